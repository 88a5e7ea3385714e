// The roles that can be bound in a tenant: the platform's, and the tenant's own, which can be made and deleted here.

import { Badge, Button, Card, Group, MultiSelect, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Confirm";
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
          Make a role
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
            {role.name}
          </Text>
          <Badge variant="default" radius="sm" tt="none" fw={500}>
            {role.system ? "the platform's" : "the tenant's own"}
          </Badge>
          <Text size="sm" c="dimmed">
            for a {role.bindable_at.join(" or a ")}
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
          impact="It can no longer be given. A role that somebody still holds is not deleted."
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
      title="Make a role"
      size="lg"
      verb="Make it"
      ready={Boolean(name.trim() && keys.length)}
      act={() =>
        api.POST("/v1/tenants/{tenant_id}/roles", { params: { path }, body: { name: name.trim(), permissions: keys } })
      }
      close={close}
    >
      <Text size="sm">It never changes; to change it, make another and delete this one.</Text>
      <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
      <MultiSelect
        label="Permissions"
        description="Of those you hold yourself."
        searchable
        limit={50}
        data={mine.data?.permissions ?? []}
        value={keys}
        onChange={setKeys}
      />
    </Asking>
  );
}
