// The programs that act in this project, and the public halves of their keys.

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
  "The key is made in this browser and saved as a file, which is shown nowhere else. Whoever has the file is the program: keep it where only that program can read it (chmod 600).";
const ACTIONS: Record<
  Asked,
  { verb: string; permission: string; impact: string; danger?: boolean; when: (one: Account) => boolean }
> = {
  rotate: {
    verb: "New key",
    permission: "iam.service_account.rotate",
    impact: `${SAVED} The other keys go on working until you retire them.`,
    when: (one) => !one.disabled,
  },
  disable: {
    verb: "Disable",
    permission: "iam.service_account.disable",
    impact:
      "Its tokens are dead at once, and so is its access to machines. Work it holds waits for another controller.",
    danger: true,
    when: (one) => !one.disabled,
  },
  enable: {
    verb: "Enable",
    permission: "iam.service_account.disable",
    impact: "It can sign in and act again.",
    when: (one) => Boolean(one.disabled),
  },
  remove: {
    verb: "Delete",
    permission: "iam.service_account.delete",
    impact:
      "It is gone at once, with its keys, tokens and roles. Work it holds waits for another controller. This cannot be taken back.",
    danger: true,
    when: () => true,
  },
};
const ONE = "/v1/projects/{project_id}/service-accounts/{account_id}" as const;

export function ServiceAccountsPage() {
  const project_id = useProjectId();
  const [making, make] = useState(false);
  const found = usePages("/service-accounts", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/service-accounts", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Service accounts"
      about="Programs that act in this project, each with keys of its own. Private keys are made here or by gpuaas service-account create; the platform never sees them."
      actions={
        <Begin permission="iam.service_account.create" place={{ project_id }} act={() => make(true)}>
          New service account
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconId size={32} />} title="No service account yet">
            A controller or a script that acts here needs one.
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
  [OPERATOR, "Work on operations, as an app's controller does"],
  ["project_viewer", "Look at everything in the project"],
  ["project_admin", "Everything that is done in a project"],
] as const;

function NewAccount({ projectId, close }: { projectId: string; close: () => void }) {
  const [name, setName] = useState("");
  const appoints = useMay({ project_id: projectId })("iam.operator.appoint");
  const offered = ROLES.filter(([value]) => appoints || value !== OPERATOR);
  const [chosenRole, setRole] = useState<string | null>(null);
  const role = chosenRole ?? (appoints ? OPERATOR : "project_viewer");
  return (
    <Asking
      title="New service account"
      verb="Make it and save its file"
      ready={name.trim().length >= 3}
      act={() => createAccount(projectId, name.trim(), role)}
      close={close}
    >
      <Text size="sm">{SAVED}</Text>
      <TextInput
        label="Name"
        description="Small letters, digits and dashes."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <Select
        label="What it may do"
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
  const [leaving, leave] = useState(false); // whoever is about to be gone is asked nothing any more
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
            <Copy value={account.id} what={`the id of ${account.name}`} />
          </Group>
          <Text size="sm" c="dimmed" component="div" mt={2}>
            {account.roles.join(", ")} · last used <Time at={account.last_used_at} />
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
          title="Retire the key"
          impact="Whoever still signs with it is refused from now on."
          verb="Retire"
          danger
          close={() => retire(null)}
          act={() => api.POST(`${ONE}/keys/{key_id}/retire`, { params: { path: { ...path, key_id: retiring } } })}
        />
      )}
    </Stack>
  );
}
