// The tenants of the platform, for those who run it: made here, and given their first administrator.

import { Anchor, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconBuilding } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate } from "react-router";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Asking } from "../parts/Asking";
import { Empty, Page, Pager, Shown } from "../parts/Page";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { NamedFields } from "./NamedFields";
import { type Named, named } from "./naming";

const PAGES = [
  ["users", "People"],
  ["nodes", "Machines"],
  ["audit", "Audit trail"],
] as const;

export function TenantsPage() {
  const [making, make] = useState(false);
  const found = usePages("/tenants", [], (cursor) =>
    api.GET("/v1/tenants", { params: { query: { limit: 48, cursor } } }),
  );
  return (
    <Page
      title="Tenants"
      about="Platform administrators do not look into projects; people, machines and the audit trail are open to them."
      actions={
        <Begin permission="platform.tenant.create" place={{}} act={() => make(true)}>
          New tenant
        </Begin>
      }
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Stack>
              <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
                {items.map((one) => (
                  <One key={one.id} one={one} />
                ))}
              </SimpleGrid>
              <Pager of={found.turning} />
            </Stack>
          ) : (
            <Empty icon={<IconBuilding size={32} />} title="No tenant yet">
              A tenant is an organisation with people, machines and projects of its own.
            </Empty>
          )
        }
      </Shown>
      {making && <NewTenant close={() => make(false)} />}
    </Page>
  );
}

function One({ one }: { one: Schemas["TenantView"] }) {
  return (
    <Card>
      <Stack gap={6}>
        <Text fw={600} component="h2" m={0}>
          {one.name}
        </Text>
        <Text size="sm" c="dimmed" component="div">
          <span className="mono">{one.slug}</span> · made <Time at={one.created_at} />
        </Text>
        <Group gap="md">
          {PAGES.map(([path, title]) => (
            <Anchor
              key={path}
              component={Link}
              size="sm"
              to={`/tenants/${one.id}/${path}`}
              aria-label={`${title} of ${one.name}`}
            >
              {title}
            </Anchor>
          ))}
        </Group>
      </Stack>
    </Card>
  );
}

function NewTenant({ close }: { close: () => void }) {
  const [draft, say] = useState<Named>({ name: "", slug: "" });
  const go = useNavigate();
  return (
    <Asking
      title="New tenant"
      verb="Make it"
      ready={named(draft)}
      act={async () => (await api.POST("/v1/tenants", { body: { name: draft.name.trim(), slug: draft.slug } })).data}
      done={(made) => go(`/tenants/${made?.id}/users`)}
      close={close}
    >
      <Text size="sm">
        An organisation with people, machines and projects of its own, which no other sees. Next you invite its first
        administrator, who does the rest.
      </Text>
      <NamedFields draft={draft} say={say} />
    </Asking>
  );
}
