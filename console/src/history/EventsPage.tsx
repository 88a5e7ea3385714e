// The events of this project, newest first, live.

import { Anchor, Button, Code, Group, Stack, Table, Text } from "@mantine/core";
import { IconActivity } from "@tabler/icons-react";
import { Fragment, useState } from "react";
import { Link } from "react-router";
import { api, type Schemas } from "../api/client";
import { Problem } from "../api/problem";
import { usePages } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { Time } from "../parts/Time";

const WINDOW = 150; // sequence numbers per page; they count the tenant's events, of which this project has a part
type Happened = Schemas["EventView"];

export function EventsPage() {
  const project_id = useProjectId();
  const found = usePages("/v1/projects/{project_id}/events", [project_id], async (end) => ({
    data: await before(project_id, end),
  }));
  return (
    <Page title="Events" about="Changes in this project, newest first.">
      <Shown of={found}>
        {(items) =>
          items.length || found.turning.more ? (
            <Listed label="Events" columns={["Time", "Event", ["Resource", "sm"]]} turning={found.turning}>
              {items.map((event) => (
                <Row key={event.id} event={event} projectId={project_id} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconActivity size={32} />} title="No events yet" />
          )
        }
      </Shown>
    </Page>
  );
}

/** The page that ends at a sequence number; without one, at the newest event. */
async function before(
  projectId: string,
  end: string | undefined,
): Promise<{ items: Happened[]; next_cursor: string | null }> {
  const read = (after: number, limit: number) =>
    api.GET("/v1/projects/{project_id}/events", {
      params: { path: { project_id: projectId }, query: { after: String(after), limit } },
    });
  const last = end ? Number(end) : ((await read(0, 1)).data?.head ?? 0);
  const start = Math.max(0, last - WINDOW);
  try {
    const { data } = await read(start, WINDOW);
    return {
      items: (data?.items ?? []).filter((event) => event.sequence <= last).reverse(),
      next_cursor: start > 0 ? String(start) : null,
    };
  } catch (error) {
    if (error instanceof Problem && error.status === 410) return { items: [], next_cursor: null }; // older events are not kept
    throw error;
  }
}

function Row({ event, projectId }: { event: Happened; projectId: string }) {
  const [open, toggle] = useState(false);
  const data = event.data as Record<string, string | undefined>;
  const name = data.instance_name ?? data.name ?? data.node_name ?? event.subject;
  const words = data.message ?? data.state ?? data.status ?? "";
  return (
    <Fragment>
      <Table.Tr>
        <Table.Td>
          <Text size="sm" c="dimmed" component="span">
            <Time at={event.time} />
          </Text>
        </Table.Td>
        <Table.Td>
          <Button
            variant="subtle"
            color="gray"
            size="compact-sm"
            px={0}
            fw={600}
            className="mono"
            onClick={() => toggle(!open)}
            aria-expanded={open}
          >
            {event.type}
          </Button>
          <Text size="xs" c="dimmed" lineClamp={1}>
            {words}
          </Text>
        </Table.Td>
        <Table.Td visibleFrom="sm">
          <About event={event} name={name} projectId={projectId} />
        </Table.Td>
      </Table.Tr>
      {open && (
        <Table.Tr>
          <Table.Td colSpan={3} style={{ background: "var(--still-wash)" }}>
            <Stack gap="xs">
              <Group gap="md">
                <Text size="xs" c="dimmed">
                  Sequence {event.sequence}
                </Text>
                <Anchor component={Link} size="xs" className="mono" to={`/triage/${event.correlationid}`}>
                  {event.correlationid}
                </Anchor>
              </Group>
              <Code block tabIndex={0} style={{ background: "transparent" }}>
                {JSON.stringify(event.data, null, 2)}
              </Code>
            </Stack>
          </Table.Td>
        </Table.Tr>
      )}
    </Fragment>
  );
}

function About({ event, name, projectId }: { event: Happened; name: string; projectId: string }) {
  const { operation_id, app_instance_id } = event.data as Record<string, string | null | undefined>;
  const to =
    event.type.startsWith("apps.operation.") && operation_id
      ? `operations/${operation_id}`
      : app_instance_id
        ? `instances/${app_instance_id}`
        : null;
  if (!to) {
    return (
      <Text size="sm" className="mono">
        {name}
      </Text>
    );
  }
  return (
    <Anchor component={Link} size="sm" to={`/projects/${projectId}/${to}`}>
      {name}
    </Anchor>
  );
}
