// Choosing machines: available ones first, then the others, each with its reason.

import { Anchor, Checkbox, Group, Input, Radio, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { api } from "../api/client";
import { useEvery } from "../api/usePages";
import { Shown } from "../parts/Page";
import { type Allocation, about, inOrder, whyNot } from "./machines";

const FEW = 12; // a search field is shown beyond this
const MOST = 50; // on the screen at once

interface Props {
  projectId: string;
  backend: string | undefined;
  chosen: string[];
  choose: (ids: string[]) => void;
  most: number | null;
  label: string;
  hint?: string;
  taken?: Record<string, string>;
}

export function MachinePicker({ projectId, backend, chosen, choose, most, label, hint, taken }: Props) {
  const path = { project_id: projectId };
  const [wanted, want] = useState("");
  const machines = useEvery("/v1/projects/{project_id}/allocations", path, (cursor) =>
    api.GET("/v1/projects/{project_id}/allocations", {
      params: { path, query: { state: "active", limit: 100, cursor } },
    }),
  );
  const pick = (id: string) => {
    if (most === 1) return choose([id]);
    choose(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  };
  return (
    <Input.Wrapper label={label} description={hint} labelElement="div">
      <Shown of={machines} lines={6}>
        {(items) => {
          const judged = inOrder(items, backend).map((machine) => ({
            machine,
            reason: whyNot(machine, backend, taken),
          }));
          if (!judged.length) return <NoMachines projectId={projectId}>This project has no machines.</NoMachines>;
          const named = judged.filter(({ machine }) => machine.name.includes(wanted.trim().toLowerCase()));
          return (
            <>
              {judged.length > FEW && (
                <TextInput
                  size="xs"
                  mt={6}
                  placeholder={`Search ${judged.length} machines`}
                  aria-label={`Search: ${label}`}
                  value={wanted}
                  onChange={(event) => want(event.currentTarget.value)}
                />
              )}
              <Stack gap={6} mt={6} mah={320} role="group" aria-label={label} style={{ overflowY: "auto" }}>
                {named.slice(0, MOST).map(({ machine, reason }) => (
                  <Choice
                    key={machine.id}
                    machine={machine}
                    reason={reason}
                    single={most === 1}
                    chosen={chosen.includes(machine.id)}
                    pick={pick}
                  />
                ))}
              </Stack>
              {named.length > MOST && (
                <Text size="xs" c="dimmed" mt={6}>
                  {named.length - MOST} more. Type part of a name to find them.
                </Text>
              )}
              {judged.every(({ reason }) => reason !== null) && (
                <NoMachines projectId={projectId}>No machine is available.</NoMachines>
              )}
            </>
          );
        }}
      </Shown>
    </Input.Wrapper>
  );
}

function Choice(props: {
  machine: Allocation;
  reason: string | null;
  single: boolean;
  chosen: boolean;
  pick: (id: string) => void;
}) {
  const { machine, reason, single, chosen, pick } = props;
  const Control = single ? Radio : Checkbox;
  return (
    <Control.Card
      checked={chosen}
      disabled={reason !== null}
      onClick={() => reason === null && pick(machine.id)}
      p="sm"
      radius="md"
      flex="none"
      aria-label={`${machine.name}, ${reason ?? about(machine)}`}
      style={{
        background: chosen ? "var(--busy-wash)" : "var(--surface)",
        borderColor: chosen ? "var(--busy)" : "var(--line)",
      }}
    >
      <Group wrap="nowrap" gap="sm">
        <Control.Indicator disabled={reason !== null} />
        <div style={{ minWidth: 0 }}>
          <Text size="sm" fw={600} c={reason ? "dimmed" : undefined}>
            {machine.name}
          </Text>
          <Text size="xs" c="dimmed">
            {reason ?? about(machine)}
          </Text>
        </div>
      </Group>
    </Control.Card>
  );
}

function NoMachines({ projectId, children }: { projectId: string; children: string }) {
  return (
    <Text size="sm" c="dimmed" mt={6}>
      {children}{" "}
      <Anchor component={Link} to={`/projects/${projectId}/allocations`} inherit underline="always">
        Add machine
      </Anchor>
    </Text>
  );
}
