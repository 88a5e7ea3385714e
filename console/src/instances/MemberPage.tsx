// One member: state, machine and operations.

import { Anchor, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link, useParams } from "react-router";
import { Actions } from "../actions/Actions";
import { memberOffers } from "../actions/offers";
import { queries } from "../api/client";
import { useProjectId } from "../app/place";
import { componentTitle } from "../catalog/manifest";
import { useManifest } from "../catalog/useManifest";
import { Forecast } from "../findings/Forecast";
import { OperationCard } from "../operations/OperationCard";
import { OperationsList } from "../operations/OperationsList";
import { CopyLine } from "../parts/Copy";
import { Facts, factsOf, Value } from "../parts/Facts";
import { Page, Shown } from "../parts/Page";
import { CorrelationLine } from "../parts/ProblemNote";
import { State } from "../parts/State";
import { memberName } from "./members";
import { useInstance } from "./useInstance";

export function MemberPage() {
  const project_id = useProjectId();
  const { instanceId = "", memberId = "" } = useParams();
  const instance = useInstance(project_id, instanceId);
  const member = queries.useQuery("get", "/v1/projects/{project_id}/instances/{instance_id}/members/{member_id}", {
    params: { path: { project_id, instance_id: instanceId, member_id: memberId } },
  });
  const manifest = useManifest(instance.data?.app_slug, instance.data?.version);
  const one = member.data;
  const crumb = (
    <Anchor component={Link} to={`/projects/${project_id}/instances/${instanceId}`} inherit>
      {instance.data?.name ?? "Instance"}
    </Anchor>
  );
  if (!one || !instance.data) {
    return (
      <Page title="Member" crumb={crumb}>
        <Shown of={member}>{() => null}</Shown>
      </Page>
    );
  }
  const connects = `gpuaas ssh ${instance.data.name} ${memberName(one)}`;
  const { forecast: _, ...reported } = one.adapter_detail ?? {}; // shown above
  const target = { projectId: project_id, instance: instance.data, memberId };
  return (
    <Page
      title={`${memberName(one)} on ${one.node_name}`}
      crumb={crumb}
      about={
        <Group gap="md" component="span">
          <State state={one.state} />
          <span>{componentTitle(manifest, one.component_key)}</span>
          <span>{one.address}</span>
        </Group>
      }
      actions={
        <Actions
          offers={memberOffers(one.available_actions, manifest)}
          target={target}
          kind="member"
          name={memberName(one)}
        />
      }
    >
      {one.current_operation_id && <OperationCard projectId={project_id} operationId={one.current_operation_id} />}
      {one.state === "draining" && <Forecast detail={one.adapter_detail} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card>
          <Heading>Runtime</Heading>
          <Facts
            rows={[
              ["State", one.runtime_state ? <State key="state" state={one.runtime_state} /> : "Not reported yet"],
              ["Version", one.runtime_version ?? "Not reported yet"],
              ...factsOf(reported),
              ["Trace ID", <CorrelationLine key="cor" bare id={one.correlation_id} />],
            ]}
          />
        </Card>
        <Card>
          <Heading>Machine</Heading>
          <Stack gap="sm">
            <Text size="xs" c="dimmed">
              Connect over SSH
            </Text>
            <CopyLine value={connects} what="the SSH command" />
            <Value value={one.facts} />
          </Stack>
        </Card>
      </SimpleGrid>
      <Stack gap="xs">
        <OperationsList projectId={project_id} filter={{ member_id: memberId }} />
      </Stack>
    </Page>
  );
}

function Heading({ children }: { children: string }) {
  return (
    <Text component="h2" fw={650} m={0} mb="sm">
      {children}
    </Text>
  );
}
