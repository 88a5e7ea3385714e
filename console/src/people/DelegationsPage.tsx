// What programs may do here on somebody's behalf: lent by people who hold it, for a time.

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
import { Lend } from "./Lend";

type Delegation = Schemas["DelegationView"];
const VERBS = { revoke: { verb: "Revoke" } };

export function DelegationsPage() {
  const project_id = useProjectId();
  const [lending, lend] = useState(false);
  const nameOf = useNames(project_id);
  const found = usePages("/delegations", [project_id], (cursor) =>
    api.GET("/v1/projects/{project_id}/delegations", {
      params: { path: { project_id }, query: { limit: 50, cursor } },
    }),
  );
  return (
    <Page
      title="Delegations"
      about="What programs may do in this project on a person's behalf. It is never more than that person may do at that moment, and the audit trail names both."
      actions={
        <Begin permission="iam.delegation.create" place={{ project_id }} act={() => lend(true)}>
          Lend permissions
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconArrowsExchange size={32} />} title="Nothing is lent here">
            A program that acts for somebody, also one of another project, can be lent what they may do.
          </Empty>
        }
      >
        {(one) => <One key={one.id} one={one} nameOf={nameOf} />}
      </Cards>
      {lending && <Lend projectId={project_id} close={() => lend(false)} />}
    </Page>
  );
}

/** People and programs of the project by id; programs of other projects are not among them. */
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
  const program = nameOf(one.grantee_id) ?? "A program of another project";
  const person = nameOf(one.grantor_id) ?? one.grantor_id;
  const lost = one.state === "active" ? one.permissions.filter((key) => !one.effective.includes(key)) : [];
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Group gap="md">
            <Text fw={650} component="h2" m={0} style={{ overflowWrap: "anywhere" }}>
              {program} for {person}
            </Text>
            <State state={one.state} />
          </Group>
          <Group gap={4}>
            <Text size="xs" c="dimmed" className="mono">
              {one.grantee_id}
            </Text>
            <Copy value={one.grantee_id} what="the id of the program" />
          </Group>
          <Text size="sm" mt={4}>
            {one.reason}
            {one.subject && ` (${one.subject})`}
          </Text>
          <Text size="sm" c="dimmed" component="div">
            Lent <Time at={one.created_at} />
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
              Gives nothing at the moment, since {person} may not: {lost.join(", ")}
            </Text>
          )}
        </div>
        {one.state === "active" && may("iam.delegation.revoke") && (
          <Verbs offered={["revoke"]} verbs={VERBS} name={program} ask={ask} />
        )}
      </Group>
      {asked && (
        <Confirm
          title={`Revoke what was lent to ${nameOf(one.grantee_id) ?? one.grantee_id}`}
          impact="It loses this with its next request. What it has asked for goes on."
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
