// Which apps this project was given, until when and how narrowed; giving and taking them where one may.

import { Button, Card, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconApps } from "@tabler/icons-react";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Confirm";
import { Facts } from "../parts/Facts";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time, Until } from "../parts/Time";
import { sentence } from "../parts/tone";
import { Refused } from "../session/Refused";
import { useMay } from "../session/session";
import { draftOf, fieldTitle, rulesOf, ruleWords } from "./fields";
import { RulesForm } from "./RulesForm";

type Entry = Schemas["CatalogEntry"];
type Entitlement = Schemas["EntitlementView"];

export function EntitlementsPage() {
  const project_id = useProjectId();
  const params = { path: { project_id } };
  const catalog = queries.useQuery("get", "/v1/projects/{project_id}/catalog", { params });
  const given = queries.useQuery("get", "/v1/projects/{project_id}/entitlements", { params });
  const known = new Map(given.data?.items.map((one) => [one.app_slug, one]));
  return (
    <Page
      title="Entitlements"
      about="Which apps this project was given. What it may deploy is narrowed further by policies."
    >
      <Shown of={given.data ? catalog : given}>
        {() =>
          catalog.data?.items.length ? (
            <Stack>
              {catalog.data.items.map((entry) => (
                <One key={entry.app.slug} entry={entry} given={known.get(entry.app.slug)} projectId={project_id} />
              ))}
            </Stack>
          ) : (
            <Empty icon={<IconApps size={32} />} title="No app has been published yet">
              A platform administrator publishes apps; then they can be given to projects.
            </Empty>
          )
        }
      </Shown>
    </Page>
  );
}

interface Of {
  entry: Entry;
  given: Entitlement | undefined;
  projectId: string;
}

function standing({ given }: Pick<Of, "given">): string {
  if (!given) return "not_given";
  return given.active ? "active" : given.enabled ? "expired" : "disabled";
}

function One({ entry, given, projectId }: Of) {
  const [asked, ask] = useState<"give" | "take" | null>(null);
  const may = useMay({ project_id: projectId });
  const narrowed = Object.entries(given?.overlay?.rules ?? {}) as [string, { only?: string[]; deny?: string[] }][];
  const verb = given?.active ? "Change" : "Give";
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Group gap="md">
            <Text fw={650} component="h2" m={0}>
              {entry.app.name}
            </Text>
            <State state={standing({ given })} />
          </Group>
          <Text size="sm" mt={4}>
            {sentence(entry.reason)}
          </Text>
          {given && (
            <Text size="sm" c="dimmed" component="div" mt={2}>
              Changed <Time at={given.updated_at} />
              {given.enabled && !given.expires_at && " · no end"}
              {given.enabled && given.expires_at && (
                <>
                  {" "}
                  · ends <Until at={given.expires_at} />
                </>
              )}
            </Text>
          )}
        </div>
        {may("catalog.entitlement.create") ? (
          <Group gap="xs">
            <Button size="xs" variant="default" onClick={() => ask("give")} aria-label={`${verb}: ${entry.app.name}`}>
              {verb}
            </Button>
            {given?.enabled && may("catalog.entitlement.disable") && (
              <Button
                size="xs"
                variant="default"
                onClick={() => ask("take")}
                aria-label={`Take away: ${entry.app.name}`}
              >
                Take away
              </Button>
            )}
          </Group>
        ) : (
          <Refused permission="catalog.entitlement.create" place={{ project_id: projectId }}>
            {verb}
          </Refused>
        )}
      </Group>
      {narrowed.length > 0 && (
        <Stack gap={6} mt="md">
          <Text size="sm" fw={600}>
            Narrowed for this app{given?.overlay?.reason ? `: ${given.overlay.reason}` : ""}
          </Text>
          <Facts rows={narrowed.map(([field, rule]) => [fieldTitle(field), ruleWords(rule)])} />
        </Stack>
      )}
      {asked === "give" && <Give entry={entry} given={given} projectId={projectId} close={() => ask(null)} />}
      {asked === "take" && <Take entry={entry} projectId={projectId} close={() => ask(null)} />}
    </Card>
  );
}

const ENDS = [
  ["", "No end"],
  ["604800", "In a week"],
  ["2592000", "In 30 days"],
  ["31536000", "In a year"],
] as const;

function Give({ entry, given, projectId, close }: Of & { close: () => void }) {
  const [ends, setEnds] = useState("");
  const [draft, change] = useState(draftOf(given?.overlay?.rules));
  const [reason, setReason] = useState(given?.overlay?.reason ?? "");
  return (
    <Asking
      title={`Give ${entry.app.name} to this project`}
      size="lg"
      verb="Give it"
      act={() => {
        const overlay = rulesOf(draft);
        return api.POST("/v1/projects/{project_id}/entitlements", {
          params: { path: { project_id: projectId } },
          body: {
            app_slug: entry.app.slug,
            reason: reason.trim(),
            expires_in_s: ends ? Number(ends) : undefined,
            overlay: Object.keys(overlay).length || given?.overlay ? overlay : undefined,
          },
        });
      }}
      close={close}
    >
      <Text size="sm">People of the project who may deploy can deploy it from now on, where policies allow it.</Text>
      <Select
        label="Ends"
        data={ENDS.map(([value, label]) => ({ value, label }))}
        value={ends}
        onChange={(chosen) => setEnds(chosen ?? "")}
        allowDeselect={false}
      />
      <RulesForm draft={draft} change={change} without={["apps"]} />
      {Object.keys(draft).length > 0 && (
        <TextInput
          label="Reason"
          description="Of narrowing it; everybody it refuses is told."
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      )}
    </Asking>
  );
}

function Take({ entry, projectId, close }: Omit<Of, "given"> & { close: () => void }) {
  const path = { project_id: projectId, app_slug: entry.app.slug };
  const take = async () => {
    const { data } = await api.POST("/v1/projects/{project_id}/entitlements/{app_slug}/disable", { params: { path } });
    const left = data?.keeps_running ?? [];
    notifications.show({
      message: left.length
        ? `Still running, until somebody decommissions it: ${left.join(", ")}.`
        : "Nothing of it runs.",
    });
  };
  return (
    <Confirm
      title={`Take ${entry.app.name} away`}
      impact="Nobody in the project can deploy it any more, and its controller is no longer let onto the machines of what runs between operations. What runs stays until somebody decommissions it."
      verb="Take away"
      danger
      name={entry.app.slug}
      close={close}
      act={take}
    />
  );
}
