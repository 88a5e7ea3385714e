// What may be deployed in this project, and who narrowed it; the project's own policies beneath.

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
  "Policies narrow regions, SKUs, artifact sources, modes and apps. All levels must agree, so one refusal is enough.";

export function PoliciesPage() {
  const project_id = useProjectId();
  const [app, choose] = useState<string | null>(null);
  const catalog = queries.useQuery("get", "/v1/projects/{project_id}/catalog", { params: { path: { project_id } } });
  return (
    <Page title="Policies" about={ABOUT} actions={<NewPolicy level="project" id={project_id} />}>
      <Stack gap="sm">
        <Group justify="space-between" align="flex-end">
          <Heading>What is allowed here</Heading>
          <Select
            aria-label="For which app"
            placeholder="For any app"
            clearable
            data={catalog.data?.items.map(({ app: { slug, name } }) => ({ value: slug, label: `For ${name}` })) ?? []}
            value={app}
            onChange={choose}
            w={220}
          />
        </Group>
        <Effective projectId={project_id} app={app} />
      </Stack>
      <Ask projectId={project_id} app={app} />
      <Stack gap="sm">
        <Heading>Policies of this project</Heading>
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
        Policies of the tenant and the platform are in what is allowed above; their administrators see them as they were
        declared.
      </Text>
    );
  }
  return (
    <Text size="sm" c="dimmed">
      Policies of the tenant are{" "}
      <Anchor component={Link} to={`/tenants/${tenant.id}/policies`} inherit underline="always">
        on a page of their own
      </Anchor>
      ; those of the platform are in what is allowed above.
    </Text>
  );
}

export function TenantPoliciesPage() {
  const { tenantId = "" } = useParams();
  return (
    <Page
      title="Policies of the tenant"
      about={`${ABOUT} These reach every project of the tenant.`}
      actions={<NewPolicy level="tenant" id={tenantId} />}
    >
      <Declared level="tenant" id={tenantId} />
    </Page>
  );
}

export function PlatformPoliciesPage() {
  return (
    <Page
      title="Policies of the platform"
      about={`${ABOUT} These reach everybody.`}
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
