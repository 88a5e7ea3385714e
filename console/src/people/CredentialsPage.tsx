// SSH keys that apps use for this project: create, rotate and revoke. The private key is never shown.

import { Card, Group, Text } from "@mantine/core";
import { IconKey } from "@tabler/icons-react";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Cards } from "../parts/Cards";
import { Confirm } from "../parts/Confirm";
import { CopyLine } from "../parts/Copy";
import { Empty, Page } from "../parts/Page";
import { State } from "../parts/State";
import { Time, Until } from "../parts/Time";
import { Verbs } from "../parts/Verbs";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";

type Credential = Schemas["CredentialView"];
const ONE = "/v1/projects/{project_id}/credentials/{credential_id}" as const;
type Asked = "rotate" | "complete_rotation" | "revoke";

const ACTIONS: Record<Asked, { verb: string; impact: string; permission: string; danger?: boolean; asks?: string }> = {
  rotate: {
    verb: "Rotate",
    permission: "custody.credential.rotate",
    impact: "Creates a new version. The old version stays valid for one day.",
  },
  complete_rotation: {
    verb: "Finish rotation",
    permission: "custody.credential.rotate",
    impact: "The old version stops working. Apps that still use it must fetch the new one.",
  },
  revoke: {
    verb: "Revoke",
    permission: "custody.credential.revoke",
    danger: true,
    asks: "Reason",
    impact:
      "The key can no longer be used by apps. Remove its public key from machines that trust it. This cannot be undone.",
  },
};

export function CredentialsPage() {
  const project_id = useProjectId();
  const [creating, create] = useState(false);
  const found = usePages("/v1/projects/{project_id}/credentials", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/credentials", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Credentials"
      about="SSH keys that apps use for this project. Private keys are stored encrypted and never shown."
      actions={
        <Begin permission="custody.credential.create" place={{ project_id }} act={() => create(true)}>
          Create key
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconKey size={32} />} title="No credentials yet">
            Create a key for an app that reads from private repositories or hosts.
          </Empty>
        }
      >
        {(one) => <One key={one.id} one={one} />}
      </Cards>
      {creating && (
        <Confirm
          title="Create key"
          impact="Creates an SSH key. The private key is stored encrypted; add the public key where access is needed."
          verb="Create key"
          asks="Name"
          least={3}
          close={() => create(false)}
          act={(name) =>
            api.POST("/v1/projects/{project_id}/credentials", {
              params: { path: { project_id } },
              body: { name, kind: "ssh_key" },
            })
          }
        />
      )}
    </Page>
  );
}

function One({ one }: { one: Credential }) {
  const [asked, ask] = useState<Asked | null>(null);
  const may = useMay({ project_id: one.project_id });
  const offered = (Object.keys(ACTIONS) as Asked[]).filter(
    (key) => one.available_actions.includes(key) && may(ACTIONS[key].permission),
  );
  const path = { project_id: one.project_id, credential_id: one.id };
  const act = {
    rotate: () => api.POST(`${ONE}/rotate`, { params: { path }, body: { overlap_s: 86_400 } }),
    complete_rotation: () => api.POST(`${ONE}/complete-rotation`, { params: { path } }),
    revoke: (reason: string) => api.POST(`${ONE}/revoke`, { params: { path }, body: { reason } }),
  };
  return (
    <Card>
      <Group justify="space-between" align="flex-start" mb="xs">
        <Group gap="md">
          <Text fw={650} component="h2" m={0}>
            {one.name}
          </Text>
          <State state={one.state} />
        </Group>
        <Verbs offered={offered} verbs={ACTIONS} name={one.name} ask={ask} />
      </Group>
      <CopyLine value={one.public_key} what={`the public key of ${one.name}`} />
      <Text size="sm" c="dimmed" mt="xs" component="div">
        Version {one.version}, {one.origin} · created <Time at={one.created_at} />
        {one.overlap_ends_at && (
          <>
            {" "}
            · the old version ends <Until at={one.overlap_ends_at} />
          </>
        )}
        {one.revoke_reason && ` · revoked: ${one.revoke_reason}`}
      </Text>
      {asked && (
        <Confirm
          title={`${ACTIONS[asked].verb}: ${one.name}`}
          impact={ACTIONS[asked].impact}
          verb={ACTIONS[asked].verb}
          danger={ACTIONS[asked].danger}
          asks={ACTIONS[asked].asks}
          least={ACTIONS[asked].asks ? 3 : 0}
          close={() => ask(null)}
          act={(reason) => act[asked](reason)}
        />
      )}
    </Card>
  );
}
