// The role assignments of a tenant; assigning and revoking roles.

import { Group, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { roleName } from "../parts/names";
import { Shown } from "../parts/Page";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { AssignRole } from "./AssignRole";
import { RevokeRole } from "./RevokeRole";
import { AGENT, type Binding, usePlaceOf } from "./who";

interface Props {
  tenantId: string;
  people: { id: string; name: string }[];
}

export function Bindings({ tenantId, people }: Props) {
  const [assigning, assign] = useState(false);
  const path = { tenant_id: tenantId };
  const found = usePages("/v1/tenants/{tenant_id}/role-bindings", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/role-bindings", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Stack>
      <Group justify="flex-end">
        <Begin permission="iam.binding.create" place={path} act={() => assign(true)}>
          Assign role
        </Begin>
      </Group>
      <Shown of={found}>
        {(items) => (
          <Listed
            label="Assignments"
            columns={["Name", "Role", "Scope", ["Since", "md"], ACTIONS]}
            turning={found.turning}
          >
            {items.map((one) => (
              <Row
                key={one.id}
                one={one}
                tenantId={tenantId}
                name={people.find(({ id }) => id === one.principal_id)?.name}
              />
            ))}
          </Listed>
        )}
      </Shown>
      {assigning && <AssignRole tenantId={tenantId} people={people} close={() => assign(false)} />}
    </Stack>
  );
}

function Row({ one, tenantId, name }: { one: Binding; tenantId: string; name: string | undefined }) {
  const placeOf = usePlaceOf();
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {name ?? (one.role === AGENT ? "Machine" : "Service account")}
        </Text>
        <Text size="xs" c="dimmed" className="mono" visibleFrom="sm">
          {one.principal_id}
        </Text>
      </Table.Td>
      <Table.Td>
        <Label>{roleName(one.role)}</Label>
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
        <RevokeRole tenantId={tenantId} binding={one} who={name ?? one.principal_id} />
      </Table.Td>
    </Table.Tr>
  );
}
