// The audit trail of a tenant, newest first, and its verification.

import { Anchor, Button, Group, SegmentedControl, Table, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { IconHistory, IconShieldCheck, IconShieldX, IconX } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Listed } from "../parts/Listed";
import { Empty, Page, Shown } from "../parts/Page";
import { ProblemNote } from "../parts/ProblemNote";
import { State } from "../parts/State";
import { Time } from "../parts/Time";
import { usePeople } from "../people/who";
import { useMay } from "../session/session";

const ROWS = 50;

export function AuditPage() {
  const { tenantId = "" } = useParams();
  const [outcome, setOutcome] = useState("");
  const [typed, type] = useState("");
  const [permission] = useDebouncedValue(typed.trim(), 300);
  const [search, setSearch] = useSearchParams();
  const actor = search.get("actor") ?? undefined;
  const may = useMay({ tenant_id: tenantId });
  const names = new Map(usePeople(tenantId).data?.map((one) => [one.id, one.name]));
  const only = {
    actor,
    outcome: (outcome || undefined) as "allowed" | "denied" | undefined,
    permission: /^[a-z][a-z_.]*$/.test(permission) ? permission : undefined,
  };
  const found = usePages("/v1/tenants/{tenant_id}/audit", [tenantId, only], async (before) => {
    const query = { ...only, before: Number(before ?? 0), limit: ROWS };
    const { data } = await api.GET("/v1/tenants/{tenant_id}/audit", {
      params: { path: { tenant_id: tenantId }, query },
    });
    const items = data?.items ?? [];
    return { data: { items, next_cursor: items.length === ROWS ? String(items.at(-1)?.sequence) : null } };
  });
  return (
    <Page
      title="Audit trail"
      about="Every change and every refused request. Entries are chained, so tampering is detected."
      actions={may("ledger.audit.verify") && <Verify tenantId={tenantId} />}
    >
      <Group align="flex-end">
        <TextInput
          label="Permission starts with"
          placeholder="apps.instance."
          value={typed}
          onChange={(event) => type(event.currentTarget.value)}
          w={260}
        />
        <SegmentedControl
          value={outcome}
          onChange={setOutcome}
          data={[
            { value: "", label: "All" },
            { value: "allowed", label: "Allowed" },
            { value: "denied", label: "Denied" },
          ]}
          aria-label="Outcome"
        />
        {actor && (
          <Button variant="default" rightSection={<IconX size={15} />} onClick={() => setSearch({}, { replace: true })}>
            By {names.get(actor) ?? actor}
          </Button>
        )}
      </Group>
      <Shown of={found}>
        {(items) =>
          items.length ? (
            <Listed
              label="Audit entries"
              columns={["Time", "Outcome", "Permission", ["Actor", "md"], ["Reason", "lg"], ["Trace", "sm"]]}
              turning={found.turning}
            >
              {items.map((row) => (
                <Row key={row.sequence} row={row} name={names.get(row.actor_id)} />
              ))}
            </Listed>
          ) : (
            <Empty icon={<IconHistory size={32} />} title="No matching entries">
              Change or clear the filters.
            </Empty>
          )
        }
      </Shown>
    </Page>
  );
}

function Row({ row, name }: { row: Schemas["AuditView"]; name: string | undefined }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" c="dimmed" component="span">
          <Time at={row.at} />
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={row.outcome} />
      </Table.Td>
      <Table.Td>
        <Text size="sm" className="mono" style={{ whiteSpace: "nowrap" }}>
          {row.permission}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        {name ? (
          <Text size="sm" truncate maw={140}>
            {name}
          </Text>
        ) : (
          <Text size="xs" className="mono" c="dimmed" truncate maw={140} title={row.actor_id}>
            {row.actor_id}
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="lg">
        <Text size="sm" c="dimmed" lineClamp={1} style={{ overflowWrap: "anywhere" }}>
          {row.reason}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Anchor
          component={Link}
          size="sm"
          to={`/triage/${row.correlation_id}`}
          aria-label={`Trace ${row.correlation_id}`}
        >
          Trace
        </Anchor>
      </Table.Td>
    </Table.Tr>
  );
}

function Verify({ tenantId }: { tenantId: string }) {
  const path = { tenant_id: tenantId };
  const verify = useMutation({
    mutationFn: async () => (await api.GET("/v1/tenants/{tenant_id}/audit/verify", { params: { path } })).data,
  });
  if (verify.error) return <ProblemNote error={verify.error} />;
  if (verify.data) {
    const { ok, sentence } = verify.data;
    return (
      <Group gap={8} role="status" wrap="nowrap">
        {ok ? (
          <IconShieldCheck size={20} color="var(--good)" aria-hidden />
        ) : (
          <IconShieldX size={20} color="var(--bad)" aria-hidden />
        )}
        <Text size="sm">{sentence}</Text>
      </Group>
    );
  }
  return (
    <Button
      variant="default"
      leftSection={<IconShieldCheck size={17} />}
      loading={verify.isPending}
      onClick={() => verify.mutate()}
    >
      Verify trail
    </Button>
  );
}
