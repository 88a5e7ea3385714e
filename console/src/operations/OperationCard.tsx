// A running operation in short, with a link to its page.

import { Anchor, Card, Group, Progress, Text } from "@mantine/core";
import { Link } from "react-router";
import { queries } from "../api/client";
import { State } from "../parts/State";
import { kindName } from "./kinds";

export function OperationCard({ projectId, operationId }: { projectId: string; operationId: string }) {
  const path = { project_id: projectId, operation_id: operationId };
  const { data: one } = queries.useQuery("get", "/v1/projects/{project_id}/operations/{operation_id}", {
    params: { path },
  });
  if (!one) return null;
  return (
    <Card component={Link} to={`/projects/${projectId}/operations/${one.id}`} className="card-link" p="md">
      <Group justify="space-between" mb={8}>
        <Group gap="md">
          <Text fw={600}>{kindName(one.kind)}</Text>
          <State state={one.status} noun="operation" />
        </Group>
        <Anchor component="span" size="sm">
          Steps
        </Anchor>
      </Group>
      <Progress value={one.progress.percent} animated aria-label={`${one.progress.percent} percent done`} />
      <Text size="sm" c="dimmed" mt={8}>
        {one.progress.message || "Queued. No operator has picked it up yet."}
        {one.progress.of > 0 && ` (${one.progress.step} of ${one.progress.of})`}
      </Text>
      {one.stuck && (
        <Text size="sm" c="var(--warn)" mt={4}>
          {one.stuck.message}
        </Text>
      )}
    </Card>
  );
}
