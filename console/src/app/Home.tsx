// The start: straight to one's project, or to the tenants of those who have none.

import { Anchor, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconFolderOff } from "@tabler/icons-react";
import { Link, Navigate } from "react-router";
import { queries } from "../api/client";
import { Empty, Page, Shown } from "../parts/Page";
import { useMay, useMe } from "../session/session";
import { usePlace } from "./place";

export function Home() {
  const { project } = usePlace();
  const me = useMe().data;
  const may = useMay({});
  if (project) return <Navigate to={`/projects/${project.id}/instances`} replace />;
  if (may("platform.tenant.read")) return <Tenants />;
  return (
    <Page title={`Welcome, ${me?.principal.name ?? ""}`}>
      <Empty icon={<IconFolderOff size={32} />} title="You are in no project yet">
        Ask an administrator of your organisation to give you a role in a project. Your id is {me?.principal.id}.
      </Empty>
    </Page>
  );
}

function Tenants() {
  const tenants = queries.useQuery("get", "/v1/tenants", { params: { query: { limit: 200 } } });
  return (
    <Page
      title="Tenants"
      about="Platform administrators do not look into projects; machines and the audit trail are open to them."
    >
      <Shown of={tenants}>
        {({ items }) => (
          <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
            {items.map((tenant) => (
              <Card key={tenant.id}>
                <Stack gap={6}>
                  <Text fw={600}>{tenant.name}</Text>
                  <Text size="sm" c="dimmed" className="mono">
                    {tenant.slug}
                  </Text>
                  <Group gap="md">
                    <Anchor component={Link} size="sm" to={`/tenants/${tenant.id}/nodes`}>
                      Machines
                    </Anchor>
                    <Anchor component={Link} size="sm" to={`/tenants/${tenant.id}/audit`}>
                      Audit trail
                    </Anchor>
                  </Group>
                </Stack>
              </Card>
            ))}
          </SimpleGrid>
        )}
      </Shown>
    </Page>
  );
}
