// Operations, newest first.

import { Anchor, Group, Table, Text } from "@mantine/core";
import { IconBolt } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { Listed } from "../parts/Listed";
import { Empty, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { lasted } from "../parts/time";
import { kindWords, type Operation } from "./kinds";

export interface Filter {
  instance_id?: string;
  member_id?: string;
  batch_id?: string;
  status?: string;
  history?: boolean;
}

export function OperationsList({
  projectId,
  filter,
  children,
}: {
  projectId: string;
  filter: Filter;
  children?: ReactNode; // what stands beneath, once it is known how long this is
}) {
  const path = { project_id: projectId };
  const found = usePages("/operations", [projectId, filter], (cursor) =>
    api.GET("/v1/projects/{project_id}/operations", {
      params: { path, query: { ...filter, newest_first: true, limit: 50, cursor } },
    }),
  );
  return (
    <Shown of={found}>
      {(items) => {
        if (!items.length)
          return (
            <>
              <Empty icon={<IconBolt size={32} />} title="No operations">
                Whatever is asked for shows up here.
              </Empty>
              {children}
            </>
          );
        return (
          <>
            <Listed
              label="Operations"
              columns={["Operation", "Status", ["What happened", "sm"], ["Took", "md"], "Asked for"]}
              turning={found.turning}
            >
              {items.map((one) => (
                <Row key={one.id} one={one} projectId={projectId} />
              ))}
            </Listed>
            {children}
          </>
        );
      }}
    </Shown>
  );
}

function Row({ one, projectId }: { one: Operation; projectId: string }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          to={`/projects/${projectId}/operations/${one.id}`}
          fw={600}
          size="sm"
          c="var(--mantine-color-text)"
        >
          {kindWords(one.kind)}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Group gap={6} wrap="nowrap">
          <State state={one.status} noun="operation" />
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm" c="dimmed" lineClamp={1}>
          {one.error?.message ?? one.progress.message}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed">
          {one.started_at && one.finished_at ? lasted(one.started_at, one.finished_at) : ""}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" c="dimmed" component="span">
          <Time at={one.created_at} />
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}
