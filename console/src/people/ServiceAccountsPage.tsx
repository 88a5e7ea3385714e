// The programs that act in this project, and the public halves of their keys.

import { Button, Card, Group, Stack, Text } from "@mantine/core";
import { IconId } from "@tabler/icons-react";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { useProjectId } from "../app/place";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { useMay } from "../session/session";

type Account = Schemas["ServiceAccountView"];
const ONE = "/v1/projects/{project_id}/service-accounts/{account_id}" as const;

export function ServiceAccountsPage() {
  const project_id = useProjectId();
  const found = queries.useQuery("get", "/v1/projects/{project_id}/service-accounts", {
    params: { path: { project_id }, query: { limit: 200 } },
  });
  return (
    <Page
      title="Service accounts"
      about="Programs that act in this project, each with keys of its own. gpuaas service-account create makes one where its key shall live; the platform never sees the private half."
    >
      <Shown of={found}>
        {({ items }) =>
          items.length ? (
            <Stack>
              {items.map((one) => (
                <One key={one.id} account={one} projectId={project_id} />
              ))}
            </Stack>
          ) : (
            <Empty icon={<IconId size={32} />} title="No service account yet" />
          )
        }
      </Shown>
    </Page>
  );
}

function One({ account, projectId }: { account: Account; projectId: string }) {
  const [asking, ask] = useState(false);
  const may = useMay({ project_id: projectId });
  const path = { project_id: projectId, account_id: account.id };
  const verb = account.disabled ? "Enable" : "Disable";
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
        {may("iam.service_account.disable") && (
          <Button size="xs" variant="default" onClick={() => ask(true)} aria-label={`${verb} ${account.name}`}>
            {verb}
          </Button>
        )}
      </Group>
      <Keys account={account} projectId={projectId} />
      {asking && (
        <Confirm
          title={`${verb} ${account.name}`}
          impact={
            account.disabled
              ? "It can sign in and act again."
              : "Its tokens are dead at once, and so is its access to machines. Work it holds waits for another controller."
          }
          verb={verb}
          danger={!account.disabled}
          close={() => ask(false)}
          act={() =>
            account.disabled
              ? api.POST(`${ONE}/enable`, { params: { path } })
              : api.POST(`${ONE}/disable`, { params: { path } })
          }
        />
      )}
    </Card>
  );
}

function Keys({ account, projectId }: { account: Account; projectId: string }) {
  const path = { project_id: projectId, account_id: account.id };
  const keys = queries.useQuery("get", `${ONE}/keys`, { params: { path } });
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
