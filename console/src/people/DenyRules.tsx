// What is denied to everybody in a tenant or one of its projects, before every role.

import { Button, Card, Group, Select, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { IconShieldOff } from "@tabler/icons-react";
import { useState } from "react";
import { api, queries, type Schemas } from "../api/client";
import { useProjects } from "../app/place";
import { Asking } from "../parts/Asking";
import { Confirm } from "../parts/Confirm";
import { Empty, Shown } from "../parts/Page";
import { Time } from "../parts/Time";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";

export function DenyRules({ tenantId }: { tenantId: string }) {
  const [making, make] = useState(false);
  const path = { tenant_id: tenantId };
  const found = queries.useQuery("get", "/v1/tenants/{tenant_id}/deny-rules", { params: { path } });
  return (
    <Stack>
      <Group justify="flex-end">
        <Begin permission="iam.deny.create" place={path} act={() => make(true)}>
          Deny something
        </Begin>
      </Group>
      <Shown of={found}>
        {({ items }) =>
          items.length ? (
            items.map((one) => <One key={one.id} rule={one} tenantId={tenantId} />)
          ) : (
            <Empty icon={<IconShieldOff size={32} />} title="Nothing is denied">
              Everybody may do what their roles say.
            </Empty>
          )
        }
      </Shown>
      {making && <Make tenantId={tenantId} close={() => make(false)} />}
    </Stack>
  );
}

function One({ rule, tenantId }: { rule: Schemas["DenyView"]; tenantId: string }) {
  const [lifting, lift] = useState(false);
  const may = useMay({ tenant_id: tenantId });
  const project = useProjects(tenantId).find((one) => one.id === rule.scope_id);
  return (
    <Card>
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Text fw={600} className="mono" style={{ overflowWrap: "anywhere" }}>
            {rule.permissions.join(", ")}
          </Text>
          <Text size="sm">{rule.reason}</Text>
          <Text size="sm" c="dimmed" component="div">
            {rule.scope_kind === "project" ? `In ${project?.name ?? rule.scope_id}` : "In the whole tenant"} · since{" "}
            <Time at={rule.created_at} />
          </Text>
        </div>
        {may("iam.deny.remove") && (
          <Button size="xs" variant="default" onClick={() => lift(true)} aria-label={`Lift: ${rule.reason}`}>
            Lift
          </Button>
        )}
      </Group>
      {lifting && (
        <Confirm
          title="Lift the rule"
          impact="Whoever holds a role with these permissions may use them again."
          verb="Lift it"
          danger
          close={() => lift(false)}
          act={() =>
            api.POST("/v1/tenants/{tenant_id}/deny-rules/{rule_id}/remove", {
              params: { path: { tenant_id: tenantId, rule_id: rule.id } },
            })
          }
        />
      )}
    </Card>
  );
}

function Make({ tenantId, close }: { tenantId: string; close: () => void }) {
  const path = { tenant_id: tenantId };
  const [keys, setKeys] = useState<string[]>([]);
  const [where, setWhere] = useState("");
  const [reason, setReason] = useState("");
  const projects = useProjects(tenantId);
  const mine = queries.useQuery("get", "/v1/whoami/permissions", { params: { query: path } });
  return (
    <Asking
      title="Deny something"
      size="lg"
      verb="Deny it"
      danger
      ready={keys.length > 0 && reason.trim().length >= 3}
      act={() =>
        api.POST("/v1/tenants/{tenant_id}/deny-rules", {
          params: { path },
          body: { permissions: keys, reason: reason.trim(), project_id: where || undefined },
        })
      }
      close={close}
    >
      <Text size="sm">Nobody may do it from then on, whatever their roles; you neither.</Text>
      <TagsInput
        label="Permissions"
        description="Keys, or families like apps.*"
        data={mine.data?.permissions ?? []}
        limit={12}
        value={keys}
        onChange={setKeys}
      />
      <Select
        label="Where"
        data={[
          { value: "", label: "In the whole tenant" },
          ...projects.map(({ id, name }) => ({ value: id, label: `In ${name}` })),
        ]}
        value={where}
        onChange={(chosen) => setWhere(chosen ?? "")}
        allowDeselect={false}
      />
      <TextInput
        label="Why"
        description="Everybody it refuses is told."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}
