// The tenants of the platform, for platform administrators.

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
  const found = usePages("/v1/tenants", [], (cursor) =>
    api.GET("/v1/tenants", { params: { query: { limit: 48, cursor } } }),
  );
  return (
    <Page
      title="Tenants"
      about="Platform administrators can open people, machines and the audit trail of a tenant, but not its projects."
      actions={
        <Begin permission="platform.tenant.create" place={{}} act={() => make(true)}>
          Create tenant
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
            <Empty icon={<IconBuilding size={32} />} title="No tenants yet">
              A tenant is an organisation with its own people, machines and projects.
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
          <span className="mono">{one.slug}</span> · created <Time at={one.created_at} />
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
  const [draft, change] = useState<Named>({ name: "", slug: "" });
  const go = useNavigate();
  return (
    <Asking
      title="Create tenant"
      verb="Create tenant"
      ready={named(draft)}
      act={async () => (await api.POST("/v1/tenants", { body: { name: draft.name.trim(), slug: draft.slug } })).data}
      done={(made) => go(`/tenants/${made?.id}/users`)}
      close={close}
    >
      <Text size="sm">
        An organisation with its own people, machines and projects. Next you'll invite its first administrator.
      </Text>
      <NamedFields draft={draft} change={change} />
    </Asking>
  );
}
