// Keys that apps use on this project's behalf: made, rotated and revoked here; the private half is never shown.

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
    impact: "A new version is made. The old one stays good for a day, so that everybody can change over.",
  },
  complete_rotation: {
    verb: "Finish the rotation",
    permission: "custody.credential.rotate",
    impact: "The old version is good no more; whoever has only that one must ask again.",
  },
  revoke: {
    verb: "Revoke",
    permission: "custody.credential.revoke",
    danger: true,
    asks: "Why",
    impact:
      "Nobody gets it any more. Machines that trust its public key must be told as well. This cannot be taken back.",
  },
};

export function CredentialsPage() {
  const project_id = useProjectId();
  const [making, make] = useState(false);
  const found = usePages("/credentials", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/credentials", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Credentials"
      about="SSH keys that apps use on this project's behalf. They are kept sealed; what is shown here is the public half."
      actions={
        <Begin permission="custody.credential.create" place={{ project_id }} act={() => make(true)}>
          Make a key
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconKey size={32} />} title="No credential yet">
            An app that fetches from elsewhere can be given a key here.
          </Empty>
        }
      >
        {(one) => <One key={one.id} one={one} />}
      </Cards>
      {making && (
        <Confirm
          title="Make a key"
          impact="The platform makes an SSH key and keeps its private half sealed. Put the public half where it shall open something."
          verb="Make it"
          asks="Name"
          least={3}
          close={() => make(false)}
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
        Version {one.version}, {one.origin} · made <Time at={one.created_at} />
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
          act={(said) => act[asked](said)}
        />
      )}
    </Card>
  );
}
