// The instances of this project.

import { Anchor, Button, Group, SegmentedControl, Table, Text } from "@mantine/core";
import { IconPlus, IconStack2 } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { api, type Schemas } from "../api/client";
import { type Turning, usePages } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";

export function InstancesPage() {
  const project_id = useProjectId();
  const [which, show] = useState("now");
  const deleted = which === "all";
  const found = usePages("/v1/projects/{project_id}/instances", [project_id, deleted], (cursor) =>
    api.GET("/v1/projects/{project_id}/instances", {
      params: { path: { project_id }, query: { deleted, members: 0, limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Instances"
      about="Apps running on this project's machines."
      actions={
        <>
          <SegmentedControl
            size="sm"
            value={which}
            onChange={show}
            data={[
              { value: "now", label: "Current" },
              { value: "all", label: "All" },
            ]}
            aria-label="Which instances"
          />
          <Button component={Link} to={`/projects/${project_id}/catalog`} leftSection={<IconPlus size={17} />}>
            Deploy
          </Button>
        </>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? <List items={items} turning={found.turning} /> : <NoInstances projectId={project_id} />
        }
      </Shown>
    </Page>
  );
}

function List({ items, turning }: { items: Schemas["InstanceView"][]; turning: Turning }) {
  return (
    <Listed
      label="Instances"
      columns={["Name", "State", ["Health", "sm"], ["App", "md"], ["Members", "md"], ["Updated", "lg"]]}
      turning={turning}
      hover
    >
      {items.map((one) => (
        <Row key={one.id} instance={one} />
      ))}
    </Listed>
  );
}

function Row({ instance }: { instance: Schemas["InstanceView"] }) {
  const go = useNavigate();
  const to = `/projects/${instance.project_id}/instances/${instance.id}`;
  return (
    <Table.Tr onClick={() => go(to)} style={{ cursor: "pointer" }}>
      <Table.Td>
        <Anchor
          component={Link}
          to={to}
          fw={600}
          c="var(--mantine-color-text)"
          onClick={(event) => event.stopPropagation()}
        >
          {instance.name}
        </Anchor>
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          {instance.health.sentence}
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={instance.state} />
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm" c="dimmed" lineClamp={1}>
          {instance.health.sentence}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm">
          {instance.app_slug}{" "}
          <Text span c="dimmed" inherit>
            {instance.version}
          </Text>
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">{instance.members_total}</Table.Td>
      <Table.Td visibleFrom="lg">
        <Text size="sm" c="dimmed" component="span">
          <Time at={instance.updated_at} />
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}

function NoInstances({ projectId }: { projectId: string }) {
  return (
    <Empty
      icon={<IconStack2 size={32} />}
      title="No instances yet"
      action={
        <Group>
          <Button component={Link} to={`/projects/${projectId}/catalog`}>
            Browse catalog
          </Button>
        </Group>
      }
    >
      Deploy an app from the catalog on machines of this project.
    </Empty>
  );
}
