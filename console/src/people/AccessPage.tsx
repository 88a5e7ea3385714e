// Who may do what in this project, and why: everybody whose roles reach it, and one question at a time.

import { Badge, Card, Stack, Table, Text } from "@mantine/core";
import { queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Page, Shown } from "../parts/Page";
import { Scroll } from "../parts/Scroll";
import { words } from "../parts/tone";
import { useMay } from "../session/session";
import { Explain } from "./Explain";

type Person = Schemas["ProjectMemberView"];

export function AccessPage() {
  const project_id = useProjectId();
  const may = useMay({ project_id });
  const found = queries.useQuery("get", "/v1/projects/{project_id}/members", { params: { path: { project_id } } });
  return (
    <Page
      title="People and access"
      about="Everybody whose roles reach into this project, from the project itself or from its tenant."
    >
      <Shown of={found}>
        {({ items }) => (
          <Stack gap="lg">
            {may("iam.decision.explain") && (
              <Explain people={items.map((one) => ({ id: one.principal_id, name: one.name }))} where={{ project_id }} />
            )}
            <People people={items} />
          </Stack>
        )}
      </Shown>
    </Page>
  );
}

function People({ people }: { people: Person[] }) {
  return (
    <Card p={0}>
      <Scroll label="People">
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Name</Table.Th>
              <Table.Th>Role</Table.Th>
              <Table.Th visibleFrom="sm">From</Table.Th>
              <Table.Th visibleFrom="md">Kind</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {people.map((one) => (
              <Table.Tr key={one.binding_id}>
                <Table.Td>
                  <Text size="sm" fw={600}>
                    {one.name}
                    {one.disabled && " (disabled)"}
                  </Text>
                  <Text size="xs" c="dimmed">
                    {one.email ?? one.principal_id}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <Badge variant="default" radius="sm" tt="none" fw={500} miw="max-content">
                    {one.role}
                  </Badge>
                </Table.Td>
                <Table.Td visibleFrom="sm">
                  <Text size="sm" c="dimmed">
                    {one.scope_kind === "project" ? "this project" : "the whole tenant"}
                  </Text>
                </Table.Td>
                <Table.Td visibleFrom="md">
                  <Text size="sm" c="dimmed">
                    {words(one.kind)}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Scroll>
    </Card>
  );
}
