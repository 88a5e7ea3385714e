// The people and invitations of a tenant.

import { Anchor, Group, Table, Tabs, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import { Label } from "../parts/Label";
import { Listed } from "../parts/Listed";
import { roleName } from "../parts/names";
import { Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { Invitations } from "./Invitations";
import { Invite } from "./Invite";
import { type Binding, type Person, useBindings } from "./who";

export function UsersPage() {
  const { tenantId = "" } = useParams();
  const [search, setSearch] = useSearchParams();
  const [inviting, invite] = useState(false);
  return (
    <Page
      title="People"
      about="People with an account in this tenant."
      actions={
        <Begin permission="tenancy.user.create" place={{ tenant_id: tenantId }} act={() => invite(true)}>
          Invite person
        </Begin>
      }
    >
      <Tabs
        value={search.get("tab") ?? "users"}
        onChange={(tab) => setSearch(tab && tab !== "users" ? { tab } : {}, { replace: true })}
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value="users">People</Tabs.Tab>
          <Tabs.Tab value="invitations">Invitations</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="users" pt="lg">
          <Users tenantId={tenantId} />
        </Tabs.Panel>
        <Tabs.Panel value="invitations" pt="lg">
          <Invitations tenantId={tenantId} />
        </Tabs.Panel>
      </Tabs>
      {inviting && <Invite tenantId={tenantId} close={() => invite(false)} />}
    </Page>
  );
}

function Users({ tenantId }: { tenantId: string }) {
  const path = { tenant_id: tenantId };
  const bindings = useBindings(tenantId);
  const found = usePages("/v1/tenants/{tenant_id}/users", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/users", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Shown of={found}>
      {(items) =>
        items.length ? (
          <Listed label="People" columns={["Name", "State", ["Roles", "sm"], ["Joined", "md"]]} turning={found.turning}>
            {items.map((one) => (
              <Row
                key={one.id}
                one={one}
                tenantId={tenantId}
                held={bindings.data?.filter((each) => each.principal_id === one.id)}
              />
            ))}
          </Listed>
        ) : (
          <Text size="sm" c="dimmed">
            No people yet. Invite the first administrator of this tenant.
          </Text>
        )
      }
    </Shown>
  );
}

function Row({ one, tenantId, held }: { one: Person; tenantId: string; held: Binding[] | undefined }) {
  const roles = [...new Set(held?.map((each) => each.role))];
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          to={`/tenants/${tenantId}/users/${one.id}`}
          fw={600}
          size="sm"
          c="var(--mantine-color-text)"
        >
          {one.name}
        </Anchor>
        <Text size="xs" c="dimmed">
          {one.email}
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={one.disabled ? "disabled" : "active"} />
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Group gap={6}>
          {roles.map((role) => (
            <Label key={role}>{roleName(role)}</Label>
          ))}
          {held && !roles.length && (
            <Text size="sm" c="dimmed">
              None
            </Text>
          )}
        </Group>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed" component="span">
          <Time at={one.created_at} />
        </Text>
      </Table.Td>
    </Table.Tr>
  );
}
