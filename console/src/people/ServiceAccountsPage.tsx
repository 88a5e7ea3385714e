// The service accounts of this project and their public keys.

import { Button, Card, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { IconId } from "@tabler/icons-react";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Asking } from "../parts/Asking";
import { Cards } from "../parts/Cards";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { roleName } from "../parts/names";
import { Empty, Page } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { Verbs } from "../parts/Verbs";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";
import { addKey, createAccount } from "./identity";

type Account = Schemas["ServiceAccountView"];
type Asked = "rotate" | "disable" | "enable" | "remove";
const SAVED =
  "The private key is created in this browser and saved as a file; it is not stored anywhere else. Anyone with this file can act as this account, so keep it readable by the program only.";
const ACTIONS: Record<
  Asked,
  { verb: string; permission: string; impact: string; danger?: boolean; when: (one: Account) => boolean }
> = {
  rotate: {
    verb: "New key",
    permission: "iam.service_account.rotate",
    impact: `${SAVED} The other keys keep working until you retire them.`,
    when: (one) => !one.disabled,
  },
  disable: {
    verb: "Disable",
    permission: "iam.service_account.disable",
    impact: "Its tokens and its access to machines end at once. Its operations wait for another operator.",
    danger: true,
    when: (one) => !one.disabled,
  },
  enable: {
    verb: "Enable",
    permission: "iam.service_account.disable",
    impact: "The account can be used again.",
    when: (one) => Boolean(one.disabled),
  },
  remove: {
    verb: "Delete",
    permission: "iam.service_account.delete",
    impact:
      "Deletes the account with its keys, tokens and roles. Its operations wait for another operator. This cannot be undone.",
    danger: true,
    when: () => true,
  },
};
const ONE = "/v1/projects/{project_id}/service-accounts/{account_id}" as const;

export function ServiceAccountsPage() {
  const project_id = useProjectId();
  const [making, make] = useState(false);
  const found = usePages("/v1/projects/{project_id}/service-accounts", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/service-accounts", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Service accounts"
      about="Accounts for programs, each with its own keys. Private keys are created in your browser and never sent to the server."
      actions={
        <Begin permission="iam.service_account.create" place={{ project_id }} act={() => make(true)}>
          Create service account
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconId size={32} />} title="No service accounts yet">
            Operators of apps and scripts need a service account.
          </Empty>
        }
      >
        {(one) => <One key={one.id} account={one} projectId={project_id} />}
      </Cards>
      {making && <NewAccount projectId={project_id} close={() => make(false)} />}
    </Page>
  );
}

const OPERATOR = "app_operator"; // root on the machines of its instances, so not every administrator appoints one
const ROLES = [
  [OPERATOR, "App operator: carries out operations"],
  ["project_viewer", "Project viewer: read only"],
  ["project_admin", "Project admin: full access"],
] as const;

function NewAccount({ projectId, close }: { projectId: string; close: () => void }) {
  const [name, setName] = useState("");
  const appoints = useMay({ project_id: projectId })("iam.operator.appoint");
  const offered = ROLES.filter(([value]) => appoints || value !== OPERATOR);
  const [chosenRole, setRole] = useState<string | null>(null);
  const role = chosenRole ?? (appoints ? OPERATOR : "project_viewer");
  return (
    <Asking
      title="Create service account"
      verb="Create and save key file"
      ready={name.trim().length >= 3}
      act={() => createAccount(projectId, name.trim(), role)}
      close={close}
    >
      <Text size="sm">{SAVED}</Text>
      <TextInput
        label="Name"
        description="Lowercase letters, digits and hyphens."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <Select
        label="Role"
        data={offered.map(([value, label]) => ({ value, label }))}
        value={role}
        onChange={(chosen) => chosen && setRole(chosen)}
        allowDeselect={false}
      />
    </Asking>
  );
}

function One({ account, projectId }: { account: Account; projectId: string }) {
  const [asked, ask] = useState<Asked | null>(null);
  const [leaving, leave] = useState(false); // its keys are not read while it is being deleted
  const may = useMay({ project_id: projectId });
  const path = { project_id: projectId, account_id: account.id };
  const offered = (Object.keys(ACTIONS) as Asked[]).filter(
    (key) => may(ACTIONS[key].permission) && ACTIONS[key].when(account),
  );
  const act: Record<Asked, () => Promise<unknown>> = {
    rotate: () => addKey(projectId, account),
    disable: () => api.POST(`${ONE}/disable`, { params: { path } }),
    enable: () => api.POST(`${ONE}/enable`, { params: { path } }),
    remove: () => {
      leave(true);
      return api.POST(`${ONE}/delete`, { params: { path } }).catch((error) => {
        leave(false);
        throw error;
      });
    },
  };
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <div>
          <Group gap="md">
            <Text fw={650} component="h2" m={0}>
              {account.name}
            </Text>
            <State state={account.disabled ? "disabled" : "active"} />
          </Group>
          <Group gap={4}>
            <Text size="xs" c="dimmed" className="mono">
              {account.id}
            </Text>
            <Copy value={account.id} what={`the ID of ${account.name}`} />
          </Group>
          <Text size="sm" c="dimmed" component="div" mt={2}>
            {account.roles.map(roleName).join(", ") || "No role"} · last used <Time at={account.last_used_at} />
          </Text>
        </div>
        <Verbs offered={offered} verbs={ACTIONS} name={account.name} ask={ask} />
      </Group>
      <Keys account={account} projectId={projectId} asked={!leaving} />
      {asked && (
        <Confirm
          title={`${ACTIONS[asked].verb}: ${account.name}`}
          impact={ACTIONS[asked].impact}
          verb={ACTIONS[asked].verb}
          danger={ACTIONS[asked].danger}
          name={asked === "remove" ? account.name : undefined}
          close={() => ask(null)}
          act={act[asked]}
        />
      )}
    </Card>
  );
}

function Keys({ account, projectId, asked }: { account: Account; projectId: string; asked: boolean }) {
  const path = { project_id: projectId, account_id: account.id };
  const keys = queries.useQuery("get", `${ONE}/keys`, { params: { path } }, { enabled: asked });
  const [retiring, retire] = useState<string | null>(null);
  const may = useMay({ project_id: projectId });
  if (!keys.data?.items.length) return null;
  return (
    <Stack gap={6} mt="md">
      {keys.data.items.map((key) => (
        <Group key={key.id} gap="md" justify="space-between">
          <Group gap="md">
            <State state={key.active ? "active" : "retired"} size="xs" />
            <Text size="xs" className="mono">
              {key.id}
            </Text>
            <Text size="xs" c="dimmed" component="span">
              last used <Time at={key.last_used_at} />
            </Text>
          </Group>
          {key.active && account.active_keys > 1 && may("iam.service_account.rotate") && (
            <Button
              size="compact-xs"
              variant="subtle"
              color="gray"
              onClick={() => retire(key.id)}
              aria-label={`Retire ${key.id}`}
            >
              Retire
            </Button>
          )}
        </Group>
      ))}
      {retiring && (
        <Confirm
          title="Retire key"
          impact="Requests signed with this key are rejected from now on."
          verb="Retire key"
          danger
          close={() => retire(null)}
          act={() => api.POST(`${ONE}/keys/{key_id}/retire`, { params: { path: { ...path, key_id: retiring } } })}
        />
      )}
    </Stack>
  );
}
