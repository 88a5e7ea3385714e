// The machines allocated to this project: what uses them and until when; adding and releasing one.

import { Anchor, Box, Button, Group, Progress, SegmentedControl, Select, Table, Text, TextInput } from "@mantine/core";
import { IconCpu } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "react-router";
import { api, queries, type Schemas } from "../api/client";
import { type Turning, useEvery, usePages } from "../api/usePages";
import { usePlace, useProjectId } from "../app/place";
import { about } from "../deploy/machines";
import { Asking } from "../parts/Asking";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { ProblemNote } from "../parts/ProblemNote";
import { State } from "../parts/State";
import { Until } from "../parts/Time";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";

type Allocation = Schemas["AllocationView"];

export function AllocationsPage() {
  const project_id = useProjectId();
  const [which, show] = useState("active");
  const [adding, add] = useState(false);
  const may = useMay({ project_id });
  const path = { project_id };
  const state = which === "active" ? undefined : "released";
  const found = usePages("/v1/projects/{project_id}/allocations", [project_id, which], (cursor) =>
    api.GET("/v1/projects/{project_id}/allocations", { params: { path, query: { state, limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Allocations"
      about="Machines allocated to this project. Apps run on these."
      actions={
        <>
          <SegmentedControl
            value={which}
            onChange={show}
            size="sm"
            data={[
              { value: "active", label: "In use" },
              { value: "released", label: "Released" },
            ]}
            aria-label="Which allocations"
          />
          <Begin permission="capacity.allocation.create" place={{ project_id }} act={() => add(true)}>
            Add machine
          </Begin>
        </>
      }
    >
      <Quota projectId={project_id} />
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Held items={items} turning={found.turning} mayRelease={may("capacity.allocation.release")} />
          ) : (
            <Empty icon={<IconCpu size={32} />} title={which === "active" ? "No machines yet" : "No released machines"}>
              {which === "active" ? "Add one of the tenant's machines to run apps on it." : undefined}
            </Empty>
          )
        }
      </Shown>
      {adding && <AddMachine close={() => add(false)} projectId={project_id} />}
    </Page>
  );
}

function Quota({ projectId }: { projectId: string }) {
  const quota = queries.useQuery("get", "/v1/projects/{project_id}/quota", {
    params: { path: { project_id: projectId } },
  });
  if (quota.error) return null;
  if (!quota.data) return <Box h={49} />; // as high as what comes, so that nothing jumps
  const { used_allocations, max_allocations, used_gpus, max_gpus } = quota.data;
  return (
    <Group gap="xl">
      <Used title="Machines" used={used_allocations} most={max_allocations ?? null} />
      <Used title="GPUs" used={used_gpus} most={max_gpus ?? null} />
    </Group>
  );
}

function Used({ title, used, most }: { title: string; used: number; most: number | null }) {
  return (
    <div style={{ minWidth: 160 }}>
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      <Text fw={650} size="lg">
        {used}
        <Text span c="dimmed" size="sm" fw={400}>
          {most === null ? " · no limit" : ` of ${most}`}
        </Text>
      </Text>
      {most !== null && (
        <Progress
          value={most ? (100 * used) / most : 100}
          size="sm"
          mt={4}
          aria-label={`${title}: ${used} of ${most}`}
        />
      )}
    </div>
  );
}

function Held({ items, turning, mayRelease }: { items: Allocation[]; turning: Turning; mayRelease: boolean }) {
  return (
    <Listed
      label="Allocations"
      columns={["Name", "State", "Used by", ["Machine", "md"], ["Lease", "lg"], ACTIONS]}
      turning={turning}
    >
      {items.map((one) => (
        <Row key={one.id} one={one} mayRelease={mayRelease} />
      ))}
    </Listed>
  );
}

function Row({ one, mayRelease }: { one: Allocation; mayRelease: boolean }) {
  const [releasing, release] = useState(false);
  return (
    <Table.Tr>
      <Table.Td miw={190}>
        <Text size="sm" fw={600}>
          {one.name}
        </Text>
        <Text size="xs" c="dimmed">
          {about(one)}
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={one.state} />
      </Table.Td>
      <Table.Td>
        {one.in_use_by ? (
          <Anchor component={Link} size="sm" to={`/projects/${one.project_id}/instances/${one.in_use_by.instance_id}`}>
            {one.in_use_by.instance_name}
          </Anchor>
        ) : (
          <Text size="sm" c="dimmed">
            not used
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm">{one.node_name}</Text>
        <State state={one.node_state} size="xs" />
      </Table.Td>
      <Table.Td visibleFrom="lg">
        <Text size="sm" c="dimmed" component="span">
          {one.expires_at ? <Until at={one.expires_at} /> : "no end date"}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        {one.state === "active" && mayRelease && !one.in_use_by && (
          <Button
            variant="subtle"
            color="gray"
            size="xs"
            onClick={() => release(true)}
            aria-label={`Release ${one.name}`}
          >
            Release
          </Button>
        )}
        {releasing && <Release one={one} close={() => release(false)} />}
      </Table.Td>
    </Table.Tr>
  );
}

function Release({ one, close }: { one: Allocation; close: () => void }) {
  const path = { project_id: one.project_id, allocation_id: one.id };
  return (
    <Asking
      title={`Release ${one.name}`}
      verb="Release"
      act={() => api.POST("/v1/projects/{project_id}/allocations/{allocation_id}/release", { params: { path } })}
      close={close}
    >
      <Text size="sm">The platform wipes its data from the machine. Then other projects can use it.</Text>
    </Asking>
  );
}

const LEASES = [
  ["", "No end date"],
  ["86400", "1 day"],
  ["604800", "7 days"],
  ["2592000", "30 days"],
] as const;

function AddMachine({ close, projectId }: { close: () => void; projectId: string }) {
  const { tenant } = usePlace();
  const path = { tenant_id: tenant?.id ?? "" };
  const nodes = useEvery(
    "/v1/tenants/{tenant_id}/nodes",
    path,
    (cursor) => api.GET("/v1/tenants/{tenant_id}/nodes", { params: { path, query: { limit: 50, cursor } } }),
    Boolean(tenant),
  );
  const [node, choose] = useState<string | null>(null);
  const [name, setName] = useState("");
  const [lease, setLease] = useState("");
  const ready = nodes.data?.filter((one) => one.state === "ready") ?? [];
  return (
    <Asking
      title="Add machine"
      verb="Add"
      ready={node !== null}
      act={() =>
        api.POST("/v1/projects/{project_id}/allocations", {
          params: { path: { project_id: projectId } },
          body: { node_id: node ?? "", name: name || undefined, expires_in_s: lease ? Number(lease) : undefined },
        })
      }
      close={close}
    >
      {nodes.error && <ProblemNote error={nodes.error} />}
      <Select
        label="Machine"
        description="Ready machines of the tenant. A machine of another project can't be added."
        searchable
        limit={50}
        data={ready.map((one) => ({ value: one.id, label: `${one.name} · ${one.sku} · ${one.region}` }))}
        value={node}
        onChange={choose}
      />
      <TextInput
        label="Name"
        description="Optional. Defaults to the machine's name."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Select
        label="Lease"
        data={LEASES.map(([value, label]) => ({ value, label }))}
        value={lease}
        onChange={(chosen) => setLease(chosen ?? "")}
        allowDeselect={false}
      />
    </Asking>
  );
}
