// Deny rules of a tenant. They override every role.

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
          Add deny rule
        </Begin>
      </Group>
      <Shown of={found}>
        {({ items }) =>
          items.length ? (
            items.map((one) => <One key={one.id} rule={one} tenantId={tenantId} />)
          ) : (
            <Empty icon={<IconShieldOff size={32} />} title="No deny rules yet">
              Access is decided by roles alone.
            </Empty>
          )
        }
      </Shown>
      {making && <Make tenantId={tenantId} close={() => make(false)} />}
    </Stack>
  );
}

function One({ rule, tenantId }: { rule: Schemas["DenyView"]; tenantId: string }) {
  const [removing, remove] = useState(false);
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
            {rule.scope_kind === "project" ? (project?.name ?? rule.scope_id) : "Whole tenant"} · since{" "}
            <Time at={rule.created_at} />
          </Text>
        </div>
        {may("iam.deny.remove") && (
          <Button size="xs" variant="default" onClick={() => remove(true)} aria-label={`Remove: ${rule.reason}`}>
            Remove
          </Button>
        )}
      </Group>
      {removing && (
        <Confirm
          title="Remove deny rule"
          impact="Roles with these permissions apply again."
          verb="Remove rule"
          danger
          close={() => remove(false)}
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
      title="Add deny rule"
      size="lg"
      verb="Add rule"
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
      <Text size="sm">Denies these permissions to everyone in the scope, including you.</Text>
      <TagsInput
        label="Permissions"
        description="Permission keys, or groups such as apps.*"
        data={mine.data?.permissions ?? []}
        limit={12}
        value={keys}
        onChange={setKeys}
      />
      <Select
        label="Scope"
        data={[{ value: "", label: "Whole tenant" }, ...projects.map(({ id, name }) => ({ value: id, label: name }))]}
        value={where}
        onChange={(chosen) => setWhere(chosen ?? "")}
        allowDeselect={false}
      />
      <TextInput
        label="Reason"
        description="Shown to everyone it denies."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}
