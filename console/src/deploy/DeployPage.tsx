// Deploying an app: name, machines and settings, then the plan, then the deployment.

import { Anchor, Button, Card, Grid, Group, Radio, Stack, Text, TextInput } from "@mantine/core";
import { IconRocket } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useNavigate, useParams } from "react-router";
import { api, queries, type Schemas } from "../api/client";
import { useEvery } from "../api/usePages";
import { useProjectId } from "../app/place";
import { componentTitle, type Manifest, type Topology } from "../catalog/manifest";
import { Page, Shown, Waiting } from "../parts/Page";
import { ProblemNote } from "../parts/ProblemNote";
import { sentence } from "../parts/tone";
import { WhyNot } from "../session/Refused";
import { useMay } from "../session/session";
import { type Draft, howMany, missing, NAME, suggestedName, takenBy } from "./draft";
import { MachinePicker } from "./MachinePicker";
import { OperatorPicker } from "./OperatorPicker";
import { PlanView } from "./PlanView";

const InputsForm = lazy(async () => ({ default: (await import("./InputsForm")).InputsForm }));

export function DeployPage() {
  const project_id = useProjectId();
  const { appSlug = "" } = useParams();
  const may = useMay({ project_id });
  const catalog = queries.useQuery("get", "/v1/projects/{project_id}/catalog", { params: { path: { project_id } } });
  const names = useNames(project_id);
  const entry = catalog.data?.items.find((one) => one.app.slug === appSlug);
  const manifest = entry?.manifest as unknown as Manifest | undefined;
  return (
    <Page
      title={`Deploy ${manifest?.title ?? appSlug}`}
      crumb={
        <Anchor component={Link} to={`/projects/${project_id}/catalog`} inherit>
          Catalog
        </Anchor>
      }
      about={manifest?.summary}
    >
      <Shown of={catalog}>
        {() => {
          if (!entry) return <Text>The catalog has no app named {appSlug}.</Text>;
          if (!entry.deployable || !manifest) return <Text>{sentence(entry.reason)}</Text>;
          if (!may("apps.instance.create"))
            return (
              <Card>
                <WhyNot permission="apps.instance.create" place={{ project_id }} />
              </Card>
            );
          return (
            <Shown of={names}>{(taken) => <Form manifest={manifest} projectId={project_id} taken={taken} />}</Shown>
          );
        }}
      </Shown>
    </Page>
  );
}

/** Names of the project's instances: the form proposes another one. */
function useNames(project_id: string) {
  const found = useEvery("/v1/projects/{project_id}/instances", ["names", project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/instances", {
      params: { path: { project_id }, query: { members: 0, limit: 200, cursor } },
    }),
  );
  return { ...found, data: found.data?.map((one) => one.name) };
}

function Form({ manifest, projectId, taken }: { manifest: Manifest; projectId: string; taken: string[] }) {
  const first = manifest.topologies[0]?.key ?? "";
  const [draft, setDraft] = useState<Draft>({
    name: suggestedName(manifest, taken),
    topology: first,
    placement: {},
    inputs: {},
  });
  const go = useNavigate();
  const body = {
    name: draft.name,
    app_slug: manifest.app_slug,
    version: manifest.version,
    topology: draft.topology,
    inputs: draft.inputs,
    placement_intent: draft.placement,
    operator_id: draft.operator,
  };
  const where = { params: { path: { project_id: projectId } } };
  const plan = useMutation({
    mutationFn: async () => {
      const { data } = await api.POST("/v1/projects/{project_id}/instances", {
        ...where,
        body: { ...body, validate_only: true },
      });
      return (data as unknown as Schemas["PlannedView"]).plan;
    },
  });
  const deploy = useMutation({
    mutationFn: async () => {
      const { data } = await api.POST("/v1/projects/{project_id}/instances", {
        ...where,
        body: { ...body, validate_only: false },
      });
      return (data as Schemas["AcceptedView"]).operation.id;
    },
    onSuccess: (operation) => go(`/projects/${projectId}/operations/${operation}`),
  });
  const change = (part: Partial<Draft>) => {
    setDraft((now) => ({ ...now, ...part }));
    plan.reset(); // the plan was for the previous input
    deploy.reset();
  };
  const topology = manifest.topologies.find((one) => one.key === draft.topology);
  const left = topology ? missing(draft, topology, manifest) : "Choose a topology.";
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Stack gap="lg">
          <Card>
            <Stack gap="md">
              <TextInput
                label="Name"
                description="3 to 40 lowercase letters, digits or hyphens."
                value={draft.name}
                error={
                  draft.name && !NAME.test(draft.name)
                    ? "Use 3 to 40 lowercase letters, digits or hyphens. Start with a letter."
                    : null
                }
                onChange={(event) => change({ name: event.currentTarget.value })}
              />
              {manifest.topologies.length > 1 && (
                <Radio.Group
                  label="Topology"
                  value={draft.topology}
                  onChange={(key) => change({ topology: key, placement: {} })}
                >
                  <Stack gap={8} mt={6}>
                    {manifest.topologies.map((one) => (
                      <Radio key={one.key} value={one.key} label={one.title} />
                    ))}
                  </Stack>
                </Radio.Group>
              )}
            </Stack>
          </Card>
          {topology && (
            <Machines manifest={manifest} topology={topology} draft={draft} change={change} projectId={projectId} />
          )}
          <OperatorPicker projectId={projectId} chosen={draft.operator} choose={(operator) => change({ operator })} />
          <Card>
            <Text component="h2" fw={650} m={0} mb="sm">
              Settings
            </Text>
            <Suspense fallback={<Waiting lines={3} />}>
              <InputsForm
                schema={manifest.inputs_schema}
                value={draft.inputs}
                change={(inputs) => change({ inputs })}
              />
            </Suspense>
          </Card>
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Card style={{ position: "sticky", top: 76 }}>
          <Stack gap="md">
            <Text component="h2" fw={650} m={0}>
              Plan
            </Text>
            {plan.data ? (
              <PlanView plan={plan.data} manifest={manifest} />
            ) : (
              <Text size="sm" c="dimmed">
                {left ?? "Ready. Check the plan to see what will happen; nothing is changed yet."}
              </Text>
            )}
            {plan.error && <ProblemNote error={plan.error} />}
            {deploy.error && <ProblemNote error={deploy.error} />}
            <Group justify="flex-end">
              {plan.data ? (
                <Button
                  leftSection={<IconRocket size={17} />}
                  loading={deploy.isPending}
                  onClick={() => deploy.mutate()}
                >
                  Deploy
                </Button>
              ) : (
                <Button disabled={left !== null} loading={plan.isPending} onClick={() => plan.mutate()}>
                  Check plan
                </Button>
              )}
            </Group>
          </Stack>
        </Card>
      </Grid.Col>
    </Grid>
  );
}

interface Part {
  manifest: Manifest;
  topology: Topology;
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  projectId: string;
}

function Machines({ manifest, topology, draft, change, projectId }: Part) {
  const asked = Object.entries(topology.components).filter(([, rule]) => !rule.shares_with);
  const sharing = (key: string) =>
    Object.entries(topology.components)
      .filter(([, rule]) => rule.shares_with === key)
      .map(([other]) => componentTitle(manifest, other));
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="sm">
        Machines
      </Text>
      <Stack gap="lg">
        {asked.map(([key, rule]) => (
          <MachinePicker
            key={`${topology.key}-${key}`}
            projectId={projectId}
            backend={manifest.runtime_backend}
            label={[componentTitle(manifest, key), ...sharing(key)].join(" and ")}
            hint={howMany(rule)}
            most={rule.max ?? null}
            chosen={draft.placement[key] ?? []}
            choose={(ids) => change({ placement: { ...draft.placement, [key]: ids } })}
            taken={takenBy(draft.placement, key, topology, manifest)}
          />
        ))}
      </Stack>
    </Card>
  );
}
