// The roles of a tenant: built-in ones, and custom ones that can be created and deleted here.

import { Badge, Button, Card, Group, MultiSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Confirm";
import { displayName, roleName } from "../parts/names";
import { Shown } from "../parts/Page";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";

export function Roles({ tenantId }: { tenantId: string }) {
  const [making, make] = useState(false);
  const path = { tenant_id: tenantId };
  const found = queries.useQuery("get", "/v1/tenants/{tenant_id}/roles", { params: { path } });
  return (
    <Stack>
      <Group justify="flex-end">
        <Begin permission="iam.role.create" place={path} act={() => make(true)}>
          Create role
        </Begin>
      </Group>
      <Shown of={found}>
        {({ items }) => items.map((one) => <One key={one.name} role={one} tenantId={tenantId} />)}
      </Shown>
      {making && <Make tenantId={tenantId} close={() => make(false)} />}
    </Stack>
  );
}

function One({ role, tenantId }: { role: Schemas["RoleView"]; tenantId: string }) {
  const [deleting, del] = useState(false);
  const may = useMay({ tenant_id: tenantId });
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <Group gap="md">
          <Text fw={650} component="h2" m={0}>
            {roleName(role.name)}
          </Text>
          <Badge variant="default" radius="sm" tt="none" fw={500}>
            {role.system ? "Built-in" : "Custom"}
          </Badge>
          <Text size="sm" c="dimmed">
            {role.bindable_at.map(displayName).join(" or ")} scope
          </Text>
        </Group>
        {!role.system && may("iam.role.delete") && (
          <Button size="xs" variant="default" onClick={() => del(true)} aria-label={`Delete ${role.name}`}>
            Delete
          </Button>
        )}
      </Group>
      <details>
        <summary>
          <Text span size="sm">
            {role.permissions.length} permissions
          </Text>
        </summary>
        <Text size="xs" className="mono" mt="xs" style={{ columns: "240px", overflowWrap: "anywhere" }}>
          {role.permissions.map((key) => (
            <span key={key} style={{ display: "block" }}>
              {key}
            </span>
          ))}
        </Text>
      </details>
      {deleting && (
        <Confirm
          title={`Delete ${role.name}`}
          impact="The role can no longer be assigned. A role that is still assigned can't be deleted."
          verb="Delete"
          danger
          name={role.name}
          close={() => del(false)}
          act={() =>
            api.POST("/v1/tenants/{tenant_id}/roles/{role}/delete", {
              params: { path: { tenant_id: tenantId, role: role.name } },
            })
          }
        />
      )}
    </Card>
  );
}

function Make({ tenantId, close }: { tenantId: string; close: () => void }) {
  const path = { tenant_id: tenantId };
  const [name, setName] = useState("");
  const [keys, setKeys] = useState<string[]>([]);
  const mine = queries.useQuery("get", "/v1/whoami/permissions", { params: { query: path } });
  return (
    <Asking
      title="Create role"
      size="lg"
      verb="Create role"
      ready={Boolean(name.trim() && keys.length)}
      act={() =>
        api.POST("/v1/tenants/{tenant_id}/roles", { params: { path }, body: { name: name.trim(), permissions: keys } })
      }
      close={close}
    >
      <Text size="sm">A role can't be changed later. To change it, create a new one and delete this one.</Text>
      <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
      <MultiSelect
        label="Permissions"
        description="You can include permissions that you have yourself."
        searchable
        limit={50}
        data={mine.data?.permissions ?? []}
        value={keys}
        onChange={setKeys}
      />
    </Asking>
  );
}
