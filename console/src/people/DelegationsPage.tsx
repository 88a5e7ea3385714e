// Permissions that people delegate to service accounts for a limited time.

import { Card, Group, Text } from "@mantine/core";
import { IconArrowsExchange } from "@tabler/icons-react";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Cards } from "../parts/Cards";
import { Confirm } from "../parts/Confirm";
import { Copy } from "../parts/Copy";
import { Empty, Page } from "../parts/Page";
import { State } from "../parts/State";
import { Time, Until } from "../parts/Time";
import { Verbs } from "../parts/Verbs";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";
import { Delegate } from "./Delegate";

type Delegation = Schemas["DelegationView"];
const VERBS = { revoke: { verb: "Revoke" } };

export function DelegationsPage() {
  const project_id = useProjectId();
  const [delegating, delegate] = useState(false);
  const nameOf = useNames(project_id);
  const found = usePages("/v1/projects/{project_id}/delegations", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/delegations", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Delegations"
      about="Permissions that people delegate to service accounts. A delegation never exceeds what its grantor is allowed, and the audit trail names both."
      actions={
        <Begin permission="iam.delegation.create" place={{ project_id }} act={() => delegate(true)}>
          Delegate
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconArrowsExchange size={32} />} title="No delegations yet">
            Delegate some of your permissions to a service account, also one of another project.
          </Empty>
        }
      >
        {(one) => <One key={one.id} one={one} nameOf={nameOf} />}
      </Cards>
      {delegating && <Delegate projectId={project_id} close={() => delegate(false)} />}
    </Page>
  );
}

/** Names of the people and service accounts of the project, by ID. */
function useNames(project_id: string): (id: string) => string | undefined {
  const may = useMay({ project_id });
  const params = { path: { project_id } };
  const members = queries.useQuery(
    "get",
    "/v1/projects/{project_id}/members",
    { params },
    { enabled: may("iam.member.read") },
  );
  const names = new Map(members.data?.items.map((one) => [one.principal_id, one.name]));
  return (id) => names.get(id);
}

function One({ one, nameOf }: { one: Delegation; nameOf: (id: string) => string | undefined }) {
  const [asked, ask] = useState<"revoke" | null>(null);
  const may = useMay({ project_id: one.project_id });
  const account = nameOf(one.grantee_id) ?? "A service account of another project";
  const person = nameOf(one.grantor_id) ?? one.grantor_id;
  const lost = one.state === "active" ? one.permissions.filter((key) => !one.effective.includes(key)) : [];
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Group gap="md">
            <Text fw={650} component="h2" m={0} style={{ overflowWrap: "anywhere" }}>
              {account} for {person}
            </Text>
            <State state={one.state} />
          </Group>
          <Group gap={4}>
            <Text size="xs" c="dimmed" className="mono">
              {one.grantee_id}
            </Text>
            <Copy value={one.grantee_id} what="the ID of the service account" />
          </Group>
          <Text size="sm" mt={4}>
            {one.reason}
            {one.subject && ` (${one.subject})`}
          </Text>
          <Text size="sm" c="dimmed" component="div">
            Created <Time at={one.created_at} />
            {one.state === "active" && (
              <>
                {" "}
                · ends <Until at={one.expires_at} />
              </>
            )}
          </Text>
          <Text size="xs" className="mono" mt="xs" style={{ overflowWrap: "anywhere" }}>
            {one.permissions.join(", ")}
          </Text>
          {lost.length > 0 && (
            <Text size="sm" c="var(--warn)" mt={4}>
              Not effective now, because {person} lacks: {lost.join(", ")}
            </Text>
          )}
        </div>
        {one.state === "active" && may("iam.delegation.revoke") && (
          <Verbs offered={["revoke"]} verbs={VERBS} name={account} ask={ask} />
        )}
      </Group>
      {asked && (
        <Confirm
          title={`Revoke delegation to ${nameOf(one.grantee_id) ?? one.grantee_id}`}
          impact="Takes effect with its next request. Operations that it started continue."
          verb="Revoke"
          danger
          close={() => ask(null)}
          act={() =>
            api.POST("/v1/projects/{project_id}/delegations/{delegation_id}/revoke", {
              params: { path: { project_id: one.project_id, delegation_id: one.id } },
            })
          }
        />
      )}
    </Card>
  );
}
