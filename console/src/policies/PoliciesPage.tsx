// What policies allow in this project, and the project's own policies.

import { Anchor, Group, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link, useParams } from "react-router";
import { queries } from "../api/client";
import { usePlace, useProjectId } from "../app/place";
import { Page } from "../parts/Page";
import { useWide } from "../session/session";
import { Declared, NewPolicy } from "./Declared";
import { Ask, Effective } from "./Effective";

const ABOUT =
  "Policies restrict apps, regions, SKUs, artifact sources and modes. A value must be allowed at every level.";

export function PoliciesPage() {
  const project_id = useProjectId();
  const [app, choose] = useState<string | null>(null);
  const catalog = queries.useQuery("get", "/v1/projects/{project_id}/catalog", { params: { path: { project_id } } });
  return (
    <Page title="Policies" about={ABOUT} actions={<NewPolicy level="project" id={project_id} />}>
      <Stack gap="sm">
        <Group justify="space-between" align="flex-end">
          <Heading>Effective policy</Heading>
          <Select
            aria-label="App"
            placeholder="Any app"
            clearable
            data={catalog.data?.items.map(({ app: { slug, name } }) => ({ value: slug, label: name })) ?? []}
            value={app}
            onChange={choose}
            w={220}
          />
        </Group>
        <Effective projectId={project_id} app={app} />
      </Stack>
      <Ask projectId={project_id} app={app} />
      <Stack gap="sm">
        <Heading>Project policies</Heading>
        <Declared level="project" id={project_id} />
        <OtherLevels />
      </Stack>
    </Page>
  );
}

function OtherLevels() {
  const { tenant } = usePlace();
  if (!useWide(tenant?.id) || !tenant) {
    return (
      <Text size="sm" c="dimmed">
        The effective policy above includes tenant and platform policies.
      </Text>
    );
  }
  return (
    <Text size="sm" c="dimmed">
      The effective policy above includes platform policies and{" "}
      <Anchor component={Link} to={`/tenants/${tenant.id}/policies`} inherit underline="always">
        tenant policies
      </Anchor>
      .
    </Text>
  );
}

export function TenantPoliciesPage() {
  const { tenantId = "" } = useParams();
  return (
    <Page
      title="Tenant policies"
      about={`${ABOUT} These apply to every project of the tenant.`}
      actions={<NewPolicy level="tenant" id={tenantId} />}
    >
      <Declared level="tenant" id={tenantId} />
    </Page>
  );
}

export function PlatformPoliciesPage() {
  return (
    <Page
      title="Platform policies"
      about={`${ABOUT} These apply to every tenant.`}
      actions={<NewPolicy level="platform" id="platform" />}
    >
      <Declared level="platform" id="platform" />
    </Page>
  );
}

function Heading({ children }: { children: string }) {
  return (
    <Text component="h2" fw={650} m={0}>
      {children}
    </Text>
  );
}
