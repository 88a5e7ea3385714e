// The machines of the tenant: state, last contact, hardware and location.

import { ActionIcon, Menu, Table, Text, TextInput } from "@mantine/core";
import { IconDots, IconLock, IconServer2 } from "@tabler/icons-react";
import { useState } from "react";
import { useParams } from "react-router";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Asking } from "../parts/Asking";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { useMay } from "../session/session";

type Machine = Schemas["NodeView"];

export function NodesPage() {
  const { tenantId = "" } = useParams();
  const path = { tenant_id: tenantId };
  const found = usePages("/v1/tenants/{tenant_id}/nodes", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/nodes", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Page title="Machines" about="Machines enrolled for this tenant.">
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed
              label="Machines"
              columns={["Machine", "State", ["Last seen", "sm"], ["Hardware", "md"], ["Location", "lg"], ACTIONS]}
              turning={found.turning}
            >
              {items.map((one) => (
                <Row key={one.id} one={one} tenantId={tenantId} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconServer2 size={32} />} title="No machines yet">
              A machine appears here once it is enrolled. See the operator guide for enrolment.
            </Empty>
          )
        }
      </Shown>
    </Page>
  );
}

function hardwareOf(one: Machine): string {
  const { cpus, memory_mb, gpus } = one.facts as { cpus?: number; memory_mb?: number; gpus?: { model: string }[] };
  const models = gpus?.length ? `${gpus.length} × ${gpus[0]?.model}` : "no GPU";
  return [models, cpus && `${cpus} CPUs`, memory_mb && `${Math.round(memory_mb / 1024)} GiB`]
    .filter(Boolean)
    .join(" · ");
}

function Row({ one, tenantId }: { one: Machine; tenantId: string }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {one.name}
        </Text>
        <Text size="xs" c="dimmed">
          {one.address}
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={one.state} />
        {one.standing_reason && (
          <Text size="xs" c="dimmed">
            {one.standing_reason}
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm" c="dimmed" component="span">
          <Time at={one.last_seen_at} />
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm">{hardwareOf(one)}</Text>
      </Table.Td>
      <Table.Td visibleFrom="lg">
        <Text size="sm" c="dimmed">
          {[one.region, one.sku, one.pool].filter(Boolean).join(" · ")}
        </Text>
      </Table.Td>
      <Table.Td>
        <Decisions one={one} tenantId={tenantId} />
      </Table.Td>
    </Table.Tr>
  );
}

const DECISIONS = {
  cordon: ["Cordon", "No new members are placed on it. Running jobs continue.", "Already cordoned or draining."],
  uncordon: ["Uncordon", "New members can be placed on it again.", "Not cordoned."],
  drain: [
    "Drain",
    "No new members are placed on it, and its users are asked to move their work away.",
    "Already draining.",
  ],
} as const;
type Decision = keyof typeof DECISIONS;
/** States in which only an earlier decision rules out another; a silent machine keeps what was decided. */
const SETTLED = ["ready", "cordoned", "draining", "unknown", "lost"];

function Decisions({ one, tenantId }: { one: Machine; tenantId: string }) {
  const [chosen, choose] = useState<Decision | null>(null);
  const may = useMay({ tenant_id: tenantId });
  const offers = one.available_actions.filter(({ action }) => action in DECISIONS && may(`capacity.node.${action}`));
  if (!offers.length) return null;
  return (
    <>
      <Menu width={280}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${one.name}`}>
            <IconDots size={18} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {offers.map(({ action, allowed, reason }) => (
            <Menu.Item
              key={action}
              aria-disabled={!allowed}
              leftSection={allowed ? undefined : <IconLock size={15} />}
              closeMenuOnClick={allowed}
              onClick={allowed ? () => choose(action as Decision) : undefined}
            >
              <Text size="sm" fw={500} c={allowed ? undefined : "dimmed"}>
                {DECISIONS[action as Decision][0]}
              </Text>
              {!allowed && (
                <Text size="xs" c="dimmed">
                  {SETTLED.includes(one.state) ? DECISIONS[action as Decision][2] : reason}
                </Text>
              )}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {chosen && <Decide one={one} decision={chosen} close={() => choose(null)} />}
    </>
  );
}

function Decide({ one, decision, close }: { one: Machine; decision: Decision; close: () => void }) {
  const [title, impact] = DECISIONS[decision];
  const [reason, setReason] = useState("");
  return (
    <Asking
      title={`${title} ${one.name}`}
      verb={title}
      act={() =>
        api.POST(`/v1/nodes/{node_id}/${decision}`, { params: { path: { node_id: one.id } }, body: { reason } })
      }
      close={close}
    >
      <Text size="sm">{impact}</Text>
      <TextInput
        label="Reason"
        description="Shown next to the machine."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}
