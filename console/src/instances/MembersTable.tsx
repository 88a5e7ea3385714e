// The members of an instance with their machine, state and actions.

import { Anchor, Box, Group, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { Actions } from "../actions/Actions";
import { memberOffers } from "../actions/offers";
import type { Schemas } from "../api/client";
import type { Manifest } from "../catalog/manifest";
import { ACTIONS, Listed } from "../parts/Listed";
import { Shown } from "../parts/Page";
import { State } from "../parts/State";
import { toneOf } from "../parts/tone";
import { memberName } from "./members";
import { useMembers } from "./useInstance";

type Instance = Schemas["InstanceView"];
type Member = Schemas["MemberView"];

export function MembersTable({
  instance,
  manifest,
  history = false,
}: {
  instance: Instance;
  manifest: Manifest | undefined;
  history?: boolean;
}) {
  const found = useMembers(instance, history);
  return (
    <Shown of={found} lines={3}>
      {(items) => {
        if (!items.length) return null;
        return (
          <Listed
            label="Members"
            columns={["Member", "State", "Machine", ["Runtime", "md"], ...(history ? [] : [ACTIONS])]}
            turning={found.turning}
            above={
              <Group justify="space-between" px="lg" pt="md" pb={4}>
                <Text component="h2" fw={650} m={0}>
                  {history ? "Former members" : "Members"}
                </Text>
                {!history && (
                  <Text size="sm" c="dimmed">
                    {instance.members_total} in total
                  </Text>
                )}
              </Group>
            }
          >
            {items.map((member) => (
              <Row key={member.id} member={member} instance={instance} manifest={manifest} history={history} />
            ))}
          </Listed>
        );
      }}
    </Shown>
  );
}

/** The runtime state, where it differs from the wanted state and needs attention. */
function oddState({ state, runtime_state: seen }: Member): string | null {
  return seen && seen !== state && ["warn", "bad"].includes(toneOf(seen)) ? seen : null;
}

function Row({
  member,
  instance,
  manifest,
  history,
}: {
  member: Member;
  instance: Instance;
  manifest: Manifest | undefined;
  history: boolean;
}) {
  const name = memberName(member);
  const odd = oddState(member);
  const target = { projectId: instance.project_id, instance, memberId: member.id };
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor
          component={Link}
          to={`/projects/${instance.project_id}/instances/${instance.id}/members/${member.id}`}
          fw={600}
          size="sm"
          c="var(--mantine-color-text)"
        >
          {name}
        </Anchor>
      </Table.Td>
      <Table.Td>
        <State state={member.state} />
        {odd && (
          <Box hiddenFrom="md">
            <State state={odd} size="xs" />
          </Box>
        )}
      </Table.Td>
      <Table.Td>
        <Text size="sm">{member.node_name}</Text>
        <Text size="xs" c="dimmed">
          {member.address}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Group gap={6} fz="sm" c="dimmed">
          {odd && <State state={odd} />}
          <span>
            {[odd ? "" : member.runtime_state, member.runtime_version].filter(Boolean).join(" · ") ||
              (!odd && "Not reported yet")}
          </span>
        </Group>
      </Table.Td>
      {!history && (
        <Table.Td>
          <Actions
            offers={memberOffers(member.available_actions, manifest)}
            target={target}
            kind="member"
            name={name}
            compact
          />
        </Table.Td>
      )}
    </Table.Tr>
  );
}
