// The apps enabled for this project, with end date and restrictions.

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
    <Page title="Entitlements" about="Apps enabled for this project. Policies can restrict them further.">
      <Shown of={given.data ? catalog : given}>
        {() =>
          catalog.data?.items.length ? (
            <Stack>
              {catalog.data.items.map((entry) => (
                <One key={entry.app.slug} entry={entry} given={known.get(entry.app.slug)} projectId={project_id} />
              ))}
            </Stack>
          ) : (
            <Empty icon={<IconApps size={32} />} title="No apps yet">
              Apps can be enabled once a platform administrator publishes them.
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
  if (!given) return "not_enabled";
  return given.active ? "active" : given.enabled ? "expired" : "disabled";
}

function One({ entry, given, projectId }: Of) {
  const [asked, ask] = useState<"enable" | "disable" | null>(null);
  const may = useMay({ project_id: projectId });
  const narrowed = Object.entries(given?.overlay?.rules ?? {}) as [string, { only?: string[]; deny?: string[] }][];
  const verb = given?.active ? "Edit" : "Enable";
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
              Updated <Time at={given.updated_at} />
              {given.enabled && !given.expires_at && " · no end date"}
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
            <Button size="xs" variant="default" onClick={() => ask("enable")} aria-label={`${verb}: ${entry.app.name}`}>
              {verb}
            </Button>
            {given?.enabled && may("catalog.entitlement.disable") && (
              <Button
                size="xs"
                variant="default"
                onClick={() => ask("disable")}
                aria-label={`Remove: ${entry.app.name}`}
              >
                Remove
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
            Restrictions{given?.overlay?.reason ? `: ${given.overlay.reason}` : ""}
          </Text>
          <Facts rows={narrowed.map(([field, rule]) => [fieldTitle(field), ruleWords(rule)])} />
        </Stack>
      )}
      {asked === "enable" && <Enable entry={entry} given={given} projectId={projectId} close={() => ask(null)} />}
      {asked === "disable" && <Disable entry={entry} projectId={projectId} close={() => ask(null)} />}
    </Card>
  );
}

const ENDS = [
  ["", "No end date"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
  ["31536000", "1 year"],
] as const;

function Enable({ entry, given, projectId, close }: Of & { close: () => void }) {
  const [ends, setEnds] = useState("");
  const [draft, change] = useState(draftOf(given?.overlay?.rules));
  const [reason, setReason] = useState(given?.overlay?.reason ?? "");
  return (
    <Asking
      title={given?.active ? `Edit ${entry.app.name}` : `Enable ${entry.app.name}`}
      size="lg"
      verb={given?.active ? "Save" : `Enable ${entry.app.name}`}
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
      <Text size="sm">Members of this project can deploy the app, within the limits of policies.</Text>
      <Select
        label="Expires after"
        data={ENDS.map(([value, label]) => ({ value, label }))}
        value={ends}
        onChange={(chosen) => setEnds(chosen ?? "")}
        allowDeselect={false}
      />
      <RulesForm draft={draft} change={change} without={["apps"]} />
      {Object.keys(draft).length > 0 && (
        <TextInput
          label="Reason"
          description="Shown to everyone it restricts."
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      )}
    </Asking>
  );
}

function Disable({ entry, projectId, close }: Omit<Of, "given"> & { close: () => void }) {
  const path = { project_id: projectId, app_slug: entry.app.slug };
  const take = async () => {
    const { data } = await api.POST("/v1/projects/{project_id}/entitlements/{app_slug}/disable", { params: { path } });
    const left = data?.keeps_running ?? [];
    notifications.show({
      message: left.length
        ? `Still running until decommissioned: ${left.join(", ")}.`
        : "No instance of it is running.",
    });
  };
  return (
    <Confirm
      title={`Remove ${entry.app.name}`}
      impact="The app can no longer be deployed in this project. Running instances stay until you decommission them, but are no longer observed between operations."
      verb="Remove"
      danger
      name={entry.app.slug}
      close={close}
      act={take}
    />
  );
}
