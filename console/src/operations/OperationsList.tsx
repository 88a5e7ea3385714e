// Operations, newest first.

import { Anchor, Group, Table, Text } from "@mantine/core";
import { IconBolt } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { useInstance } from "../instances/useInstance";
import { Listed } from "../parts/Listed";
import { Empty, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { lasted } from "../parts/time";
import { kindName, type Operation } from "./kinds";

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
  children?: ReactNode; // below the list, once it is loaded
}) {
  const path = { project_id: projectId };
  const found = usePages("/v1/projects/{project_id}/operations", [projectId, filter], (cursor) =>
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
                Deployments and changes of instances appear here.
              </Empty>
              {children}
            </>
          );
        return (
          <>
            <Listed
              label="Operations"
              columns={["Operation", "Status", ["Result", "sm"], ["Duration", "md"], "Started"]}
              turning={found.turning}
            >
              {items.map((one) => (
                <Row key={one.id} one={one} projectId={projectId} named={!filter.instance_id && !filter.member_id} />
              ))}
            </Listed>
            {children}
          </>
        );
      }}
    </Shown>
  );
}

function Row({ one, projectId, named }: { one: Operation; projectId: string; named: boolean }) {
  const instance = useInstance(projectId, named ? one.instance_id : undefined).data;
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
          {kindName(one.kind)}
        </Anchor>
        {named && (
          <Text size="xs" c="dimmed">
            {instance?.name ?? "\u00a0"}
          </Text>
        )}
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
