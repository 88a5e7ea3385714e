// The members: what each is, where it runs, how it is, what can be done with it.

import { Anchor, Box, Card, Group, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { Actions } from "../actions/Actions";
import { memberOffers } from "../actions/offers";
import type { Schemas } from "../api/client";
import { componentTitle, type Manifest } from "../catalog/manifest";
import { Pager, Shown } from "../parts/Page";
import { Scroll } from "../parts/Scroll";
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
          <Card p={0}>
            <Group justify="space-between" px="lg" pt="md" pb={4}>
              <Text component="h2" fw={650} m={0}>
                {history ? "Former members" : "Members"}
              </Text>
              {!history && (
                <Text size="sm" c="dimmed">
                  {instance.members_total} in all
                </Text>
              )}
            </Group>
            <Scroll label="Members">
              <Table>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Member</Table.Th>
                    <Table.Th>State</Table.Th>
                    <Table.Th>Machine</Table.Th>
                    <Table.Th visibleFrom="md">Reported</Table.Th>
                    {!history && <Table.Th aria-label="Actions" w={48} />}
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {items.map((member) => (
                    <Row key={member.id} member={member} instance={instance} manifest={manifest} history={history} />
                  ))}
                </Table.Tbody>
              </Table>
            </Scroll>
            <Pager of={found.turning} />
          </Card>
        );
      }}
    </Shown>
  );
}

/** What the app sees there differs from what was asked for, and somebody should look. */
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
          {componentTitle(manifest, member.component_key)} {member.ordinal + 1}
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
          {odd ? <State state={odd} /> : member.runtime_state}
          {[member.runtime_state && "·", member.runtime_version].filter(Boolean).join(" ") || "nothing yet"}
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
