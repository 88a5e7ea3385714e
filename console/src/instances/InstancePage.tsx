// One instance: health, members, actions and access.

import { Anchor, Card, Group, Stack, Tabs, Text } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { lazy, Suspense } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { Actions } from "../actions/Actions";
import { instanceOffers } from "../actions/offers";
import { useProjectId } from "../app/place";
import { type Manifest, topologyTitle } from "../catalog/manifest";
import { useManifestQuery } from "../catalog/useManifest";
import { Certificates } from "../findings/Certificates";
import { Drift } from "../findings/Drift";
import { OperationCard } from "../operations/OperationCard";
import { Copy } from "../parts/Copy";
import { Facts, Value } from "../parts/Facts";
import { displayName } from "../parts/names";
import { Page, Shown, Waiting } from "../parts/Page";
import { CorrelationLine } from "../parts/ProblemNote";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Access } from "./Access";
import { Conditions, HealthBanner } from "./Health";
import { History } from "./History";
import { MembersTable } from "./MembersTable";
import { type Instance, useInstance } from "./useInstance";

const Topology = lazy(async () => ({ default: (await import("./Topology")).Topology }));

export function InstancePage() {
  const project_id = useProjectId();
  const { instanceId = "" } = useParams();
  const asked = useInstance(project_id, instanceId);
  const crumb = (
    <Anchor component={Link} to={`/projects/${project_id}/instances`} inherit>
      Instances
    </Anchor>
  );
  const { manifest, settled } = useManifestQuery(asked.data?.app_slug, asked.data?.version);
  if (!asked.data || !settled) {
    return (
      <Page title={asked.data?.name ?? "Instance"} crumb={crumb}>
        <Shown of={asked}>{() => <Waiting />}</Shown>
      </Page>
    );
  }
  return <Body instance={asked.data} manifest={manifest} crumb={crumb} />;
}

interface Shape {
  instance: Instance;
  manifest: Manifest | undefined;
}

function Body({ instance, manifest, crumb }: Shape & { crumb: React.ReactNode }) {
  const [search, setSearch] = useSearchParams();
  const target = { projectId: instance.project_id, instance };
  const gone = instance.state === "deleted";
  return (
    <Page
      title={instance.name}
      crumb={crumb}
      about={
        <Group gap="md" component="span">
          <State state={instance.state} />
          <span>
            {manifest?.title ?? instance.app_slug} {instance.version}
          </span>
          <span>{topologyTitle(manifest, instance.topology)}</span>
        </Group>
      }
      actions={
        !gone && (
          <Actions
            offers={instanceOffers(instance.available_actions, manifest)}
            target={target}
            kind="instance"
            name={instance.name}
          />
        )
      }
    >
      <HealthBanner instance={instance} />
      {instance.current_operation_id && (
        <OperationCard projectId={instance.project_id} operationId={instance.current_operation_id} />
      )}
      <Tabs
        value={search.get("tab") ?? "overview"}
        onChange={(tab) => setSearch(tab && tab !== "overview" ? { tab } : {}, { replace: true })}
        keepMounted={false}
      >
        <Tabs.List style={{ overflowX: "auto", flexWrap: "nowrap" }}>
          <Tabs.Tab value="overview">Overview</Tabs.Tab>
          {instance.access && !gone && <Tabs.Tab value="access">Access</Tabs.Tab>}
          <Tabs.Tab value="settings">Settings</Tabs.Tab>
          <Tabs.Tab value="history">History</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="overview" pt="lg">
          <Overview instance={instance} manifest={manifest} />
        </Tabs.Panel>
        <Tabs.Panel value="access" pt="lg">
          <Access bundle={instance.access} />
        </Tabs.Panel>
        <Tabs.Panel value="settings" pt="lg">
          <Settings instance={instance} manifest={manifest} />
        </Tabs.Panel>
        <Tabs.Panel value="history" pt="lg">
          <History instance={instance} manifest={manifest} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

function Overview({ instance, manifest }: Shape) {
  const phone = useMediaQuery("(max-width: 36em)", false, { getInitialValueInEffect: false });
  if (instance.state === "deleted")
    return <Certificates projectId={instance.project_id} of={{ instance_id: instance.id }} />;
  return (
    <Stack gap="lg">
      {instance.members_total > 0 && !phone && (
        <Suspense fallback={<Waiting lines={3} />}>
          <Topology instance={instance} manifest={manifest} />
        </Suspense>
      )}
      <MembersTable instance={instance} manifest={manifest} />
      <Drift detail={instance.adapter_detail} />
      {instance.conditions.length > 0 && <Conditions conditions={instance.conditions} manifest={manifest} />}
    </Stack>
  );
}

function Settings({ instance, manifest }: Shape) {
  const titles = manifest?.inputs_schema.properties ?? {};
  const title = (name: string) => {
    const field = titles[name];
    return typeof field === "object" && field.title ? field.title : displayName(name);
  };
  const rows = Object.entries(instance.inputs).map(([name, value]): [string, React.ReactNode] => [
    title(name),
    <Value key={name} value={value} />,
  ]);
  return (
    <Stack gap="lg">
      <Card>
        <Text component="h2" fw={650} m={0} mb="sm">
          Inputs
        </Text>
        {rows.length ? (
          <Facts rows={rows} />
        ) : (
          <Text size="sm" c="dimmed">
            All settings have their defaults.
          </Text>
        )}
      </Card>
      <Card>
        <Text component="h2" fw={650} m={0} mb="sm">
          Details
        </Text>
        <Facts
          rows={[
            [
              "ID",
              <Group key="id" gap={4} wrap="nowrap">
                <span className="mono">{instance.id}</span>
                <Copy value={instance.id} what="the ID" />
              </Group>,
            ],
            [
              "Version",
              `${instance.version}${instance.previous_version ? ` (previous: ${instance.previous_version})` : ""}`,
            ],
            ["Runtime", instance.runtime_version ?? "not reported"],
            [
              "Operator",
              instance.operator_id ? (
                <span key="operator" className="mono">
                  {instance.operator_id}
                </span>
              ) : (
                "Any operator of the app"
              ),
            ],
            ["Operating mode", displayName(instance.operating_mode)],
            ["Control plane", displayName(instance.control_plane_scope)],
            ["Boundary", displayName(instance.tenant_boundary_mode)],
            ["Generation", `${instance.observed_generation} of ${instance.generation} applied`],
            ["Created", <Time key="made" at={instance.created_at} />],
            ["Trace ID", <CorrelationLine key="cor" bare id={instance.correlation_id} />],
          ]}
        />
      </Card>
    </Stack>
  );
}
