// Operations, newest first.

import { Anchor, Card, Group, Table, Text } from "@mantine/core";
import { IconBolt } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { Empty, Pager, Shown } from "../parts/Page";
import { Scroll } from "../parts/Scroll";
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
            <Card p={0}>
              <Scroll label="Operations">
                <Table>
                  <Table.Thead>
                    <Table.Tr>
                      <Table.Th>Operation</Table.Th>
                      <Table.Th>Status</Table.Th>
                      <Table.Th visibleFrom="sm">What happened</Table.Th>
                      <Table.Th visibleFrom="md">Took</Table.Th>
                      <Table.Th>Asked for</Table.Th>
                    </Table.Tr>
                  </Table.Thead>
                  <Table.Tbody>
                    {items.map((one) => (
                      <Row key={one.id} one={one} projectId={projectId} />
                    ))}
                  </Table.Tbody>
                </Table>
              </Scroll>
              <Pager of={found.turning} />
            </Card>
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
