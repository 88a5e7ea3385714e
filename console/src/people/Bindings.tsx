// Who holds which role where in a tenant; giving and taking roles.

import { Badge, Button, Card, Group, Modal, Select, Stack, Table, Text } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Confirm } from "../parts/Confirm";
import { Pager, Shown } from "../parts/Page";
import { ProblemNote } from "../parts/ProblemNote";
import { Scroll } from "../parts/Scroll";
import { Time } from "../parts/Time";
import { Refused } from "../session/Refused";
import { useMay, useMe } from "../session/session";

type Binding = Schemas["BindingView"];
const AGENT = "node_agent"; // a machine's own role: it leaves when the machine is retired
interface Props {
  tenantId: string;
  people: { id: string; name: string }[];
}

export function Bindings({ tenantId, people }: Props) {
  const [giving, give] = useState(false);
  const [taking, take] = useState<Binding | null>(null);
  const may = useMay({ tenant_id: tenantId });
  const projects = useMe().data?.projects ?? [];
  const path = { tenant_id: tenantId };
  const found = usePages("/role-bindings", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/role-bindings", { params: { path, query: { limit: 50, cursor } } }),
  );
  const nameOf = (id: string) => people.find((one) => one.id === id)?.name;
  const placeOf = (one: Binding) =>
    one.scope_kind === "tenant"
      ? "the whole tenant"
      : one.role === AGENT
        ? "itself"
        : (projects.find((each) => each.id === one.scope_id)?.name ?? one.scope_id);
  return (
    <Stack>
      <Group justify="flex-end">
        {may("iam.binding.create") ? (
          <Button leftSection={<IconPlus size={17} />} onClick={() => give(true)}>
            Give a role
          </Button>
        ) : (
          <Refused permission="iam.binding.create" place={path}>
            Give a role
          </Refused>
        )}
      </Group>
      <Shown of={found}>
        {(items) => (
          <Card p={0}>
            <Scroll label="Who holds what">
              <Table>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Who</Table.Th>
                    <Table.Th>Role</Table.Th>
                    <Table.Th>Where</Table.Th>
                    <Table.Th visibleFrom="md">Since</Table.Th>
                    <Table.Th aria-label="Actions" />
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((one) => (
                    <Table.Tr key={one.id}>
                      <Table.Td>
                        <Text size="sm" fw={600}>
                          {nameOf(one.principal_id) ?? (one.role === AGENT ? "A machine" : "A program")}
                        </Text>
                        <Text size="xs" c="dimmed" className="mono" visibleFrom="sm">
                          {one.principal_id}
                        </Text>
                      </Table.Td>
                      <Table.Td>
                        <Badge variant="default" radius="sm" tt="none" fw={500} miw="max-content">
                          {one.role}
                        </Badge>
                      </Table.Td>
                      <Table.Td>
                        <Text size="sm">{placeOf(one)}</Text>
                      </Table.Td>
                      <Table.Td visibleFrom="md">
                        <Text size="sm" c="dimmed" component="span">
                          <Time at={one.created_at} />
                        </Text>
                      </Table.Td>
                      <Table.Td ta="right">
                        {may("iam.binding.remove") && one.role !== AGENT && (
                          <Button
                            variant="subtle"
                            color="gray"
                            size="xs"
                            onClick={() => take(one)}
                            aria-label={`Take away ${one.role} from ${nameOf(one.principal_id) ?? one.principal_id}`}
                          >
                            Take away
                          </Button>
                        )}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Scroll>
            <Pager of={found.turning} />
          </Card>
        )}
      </Shown>
      {giving && <Give tenantId={tenantId} people={people} close={() => give(false)} />}
      {taking && (
        <Confirm
          title={`Take ${taking.role} away`}
          impact={`${nameOf(taking.principal_id) ?? taking.principal_id} loses ${taking.role} in ${placeOf(taking)} with the next request. What is under way goes on.`}
          verb="Take away"
          danger
          name={taking.role}
          close={() => take(null)}
          act={() =>
            api.POST("/v1/tenants/{tenant_id}/role-bindings/{binding_id}/remove", {
              params: { path: { ...path, binding_id: taking.id } },
            })
          }
        />
      )}
    </Stack>
  );
}

function Give({ tenantId, people, close }: Props & { close: () => void }) {
  const path = { tenant_id: tenantId };
  const [who, setWho] = useState<string | null>(null);
  const [role, setRole] = useState<string | null>(null);
  const [where, setWhere] = useState("");
  const projects = (useMe().data?.projects ?? []).filter((one) => one.tenant_id === tenantId);
  const may = useMay(path);
  const roles = queries.useQuery(
    "get",
    "/v1/tenants/{tenant_id}/roles",
    { params: { path } },
    { enabled: may("iam.role.read") },
  );
  const client = useQueryClient();
  const give = useMutation({
    mutationFn: () =>
      api.POST("/v1/tenants/{tenant_id}/role-bindings", {
        params: { path },
        body: { principal_id: who ?? "", role: role ?? "", project_id: where || undefined },
      }),
    onSuccess: () => {
      client.invalidateQueries();
      close();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    give.mutate();
  };
  const bindable = roles.data?.items.filter((one) => one.bindable_at.includes(where ? "project" : "tenant")) ?? [];
  return (
    <Modal opened onClose={close} title={<Text fw={650}>Give a role</Text>}>
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">Nobody gives what they do not hold themselves.</Text>
          <Select
            label="Who"
            searchable
            data={people.map(({ id, name }) => ({ value: id, label: name }))}
            value={who}
            onChange={setWho}
          />
          <Select
            label="Where"
            data={[
              { value: "", label: "In the whole tenant" },
              ...projects.map(({ id, name }) => ({ value: id, label: `In ${name}` })),
            ]}
            value={where}
            onChange={(chosen) => {
              setWhere(chosen ?? "");
              setRole(null);
            }}
            allowDeselect={false}
          />
          <Select label="Role" data={bindable.map((one) => one.name)} value={role} onChange={setRole} />
          {give.error && <ProblemNote error={give.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Leave it
            </Button>
            <Button type="submit" disabled={!who || !role} loading={give.isPending}>
              Give it
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
