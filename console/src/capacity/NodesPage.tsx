// The tenant's machines: whether they are heard, what was decided about them, what they are made of.

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
  const found = usePages("/nodes", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/nodes", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Machines"
      about="Every machine that was enrolled for this tenant. gpuaas node enrol NAME prints what to run on a new one."
    >
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed
              label="Machines"
              columns={["Machine", "State", ["Heard", "sm"], ["Made of", "md"], ["Where", "lg"], ACTIONS]}
              turning={found.turning}
            >
              {items.map((one) => (
                <Row key={one.id} one={one} tenantId={tenantId} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconServer2 size={32} />} title="No machine is enrolled yet">
              Run gpuaas node enrol NAME; it prints the line to run on the machine.
            </Empty>
          )
        }
      </Shown>
    </Page>
  );
}

function madeOf(one: Machine): string {
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
        <Text size="sm">{madeOf(one)}</Text>
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
  cordon: ["Cordon", "Nothing new is placed on it; what runs goes on."],
  uncordon: ["Uncordon", "It can be used again."],
  drain: ["Drain", "People are told to empty it; nothing new is placed on it."],
} as const;
type Decision = keyof typeof DECISIONS;

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
                  {reason}
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
        description="Everybody who looks at the machine reads it."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}
