// The projects of a tenant, and creating one.

import { Anchor, Group, Stack, Table, Text } from "@mantine/core";
import { IconFolders } from "@tabler/icons-react";
import { useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { api } from "../api/client";
import { usePages } from "../api/usePages";
import type { Project } from "../app/place";
import { Asking } from "../parts/Asking";
import { Copy } from "../parts/Copy";
import { Label } from "../parts/Label";
import { Listed } from "../parts/Listed";
import { roleName } from "../parts/names";
import { Empty, Page, Pager, Shown } from "../parts/Page";
import { Begin } from "../session/Refused";
import { NamedFields } from "./NamedFields";
import { type Named, named } from "./naming";

export function ProjectsPage() {
  const { tenantId = "" } = useParams();
  const [making, make] = useState(false);
  const found = usePages("/v1/projects", [tenantId], (cursor) =>
    api.GET("/v1/projects", { params: { query: { tenant_id: tenantId, limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Projects"
      about="A project has machines and runs apps on them. Projects can't see each other."
      actions={
        <Begin permission="tenancy.project.create" place={{ tenant_id: tenantId }} act={() => make(true)}>
          Create project
        </Begin>
      }
    >
      <Shown of={found}>
        {(mine) => {
          if (!mine.length)
            return (
              <Empty icon={<IconFolders size={32} />} title="No projects yet">
                Create a project, then add apps, machines and people.
              </Empty>
            );
          return (
            <Stack>
              <Listed label="Projects" columns={["Name", ["ID", "md"], "Your roles"]}>
                {mine.map((one) => (
                  <Row key={one.id} one={one} />
                ))}
              </Listed>
              <Pager of={found.turning} />
            </Stack>
          );
        }}
      </Shown>
      {making && <NewProject tenantId={tenantId} close={() => make(false)} />}
    </Page>
  );
}

function Row({ one }: { one: Project }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor component={Link} to={`/projects/${one.id}/instances`} fw={600} size="sm" c="var(--mantine-color-text)">
          {one.name}
        </Anchor>
        <Text size="xs" c="dimmed" className="mono">
          {one.slug}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Group gap={4} wrap="nowrap">
          <Text size="sm" c="dimmed" className="mono">
            {one.id}
          </Text>
          <Copy value={one.id} what={`the ID of ${one.name}`} />
        </Group>
      </Table.Td>
      <Table.Td>
        <Group gap={6}>
          {one.roles.map((role) => (
            <Label key={role}>{roleName(role)}</Label>
          ))}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

function NewProject({ tenantId, close }: { tenantId: string; close: () => void }) {
  const [draft, change] = useState<Named>({ name: "", slug: "" });
  const go = useNavigate();
  return (
    <Asking
      title="Create project"
      verb="Create project"
      ready={named(draft)}
      act={async () => {
        const { data } = await api.POST("/v1/tenants/{tenant_id}/projects", {
          params: { path: { tenant_id: tenantId } },
          body: { name: draft.name.trim(), slug: draft.slug },
        });
        return data;
      }}
      done={(made) => go(`/projects/${made?.id}/entitlements`)}
      close={close}
    >
      <Text size="sm">Next you'll add apps, machines and people.</Text>
      <NamedFields draft={draft} change={change} />
    </Asking>
  );
}
