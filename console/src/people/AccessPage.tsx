// Who may do what in this project, and why: everybody whose roles reach it, and one question at a time.

import { Badge, Button, Card, Group, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { IconCircleCheck, IconCircleX } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "react-router";
import { queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Page, Shown } from "../parts/Page";
import { Scroll } from "../parts/Scroll";
import { sentence, words } from "../parts/tone";
import { useMay } from "../session/session";

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
            {may("iam.decision.explain") && <Explain people={items} projectId={project_id} />}
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
                  <Badge variant="default" radius="sm" tt="none" fw={500}>
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

function Explain({ people, projectId }: { people: Person[]; projectId: string }) {
  const [search, setSearch] = useSearchParams();
  const [who, setWho] = useState(search.get("who"));
  const [key, setKey] = useState(search.get("may") ?? "");
  const options = [...new Map(people.map((one) => [one.principal_id, one.name]))].map(([value, label]) => ({
    value,
    label,
  }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSearch({ who: who ?? "", may: key.trim() }, { replace: true });
  };
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="sm">
        May they?
      </Text>
      <form onSubmit={submit}>
        <Group align="flex-end">
          <Select label="Who" data={options} value={who} onChange={setWho} searchable w={{ base: "100%", sm: 240 }} />
          <TextInput
            label="Permission"
            placeholder="apps.instance.create"
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            w={{ base: "100%", sm: 300 }}
          />
          <Button type="submit" disabled={!who || !key.trim()}>
            Explain
          </Button>
        </Group>
      </form>
      {search.get("who") && search.get("may") && (
        <Answer who={search.get("who") ?? ""} permission={search.get("may") ?? ""} projectId={projectId} />
      )}
    </Card>
  );
}

function Answer({ who, permission, projectId }: { who: string; permission: string; projectId: string }) {
  const path = { project_id: projectId };
  const asked = queries.useQuery("get", "/v1/projects/{project_id}/explain", {
    params: { path, query: { permission, principal_id: who } },
  });
  return (
    <Stack gap="xs" mt="md">
      <Shown of={asked} lines={1}>
        {(told) => (
          <Group gap="sm" wrap="nowrap" align="flex-start" role="status">
            {told.allowed ? (
              <IconCircleCheck size={22} color="var(--good)" aria-hidden style={{ flex: "none" }} />
            ) : (
              <IconCircleX size={22} color="var(--bad)" aria-hidden style={{ flex: "none" }} />
            )}
            <div>
              <Text fw={600}>
                {told.principal_name} {told.allowed ? "may" : "may not"}.
              </Text>
              <Text size="sm">{sentence(told.reason)}</Text>
              {!told.allowed && told.roles_that_hold_it.length > 0 && (
                <Text size="sm" c="dimmed">
                  Roles that hold it: {told.roles_that_hold_it.join(", ")}.
                </Text>
              )}
            </div>
          </Group>
        )}
      </Shown>
    </Stack>
  );
}
