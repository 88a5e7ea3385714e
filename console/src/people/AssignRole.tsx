// Assigns a role.

import { Select, Text } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Asking } from "../parts/Asking";
import { type RoleDraft, RoleFields } from "./RoleFields";

interface Props {
  tenantId: string;
  people: { id: string; name: string }[]; // to choose from; a single one is preselected
  projectId?: string; // preselected scope
  close: () => void;
}

export function AssignRole({ tenantId, people, projectId, close }: Props) {
  const only = people.length === 1 ? people[0] : undefined;
  const [who, setWho] = useState<string | null>(only?.id ?? null);
  const [draft, change] = useState<RoleDraft>({ where: projectId ?? "", role: null });
  return (
    <Asking
      title={only ? `Assign role to ${only.name}` : "Assign role"}
      verb="Assign"
      ready={Boolean(who && draft.role)}
      act={() =>
        api.POST("/v1/tenants/{tenant_id}/role-bindings", {
          params: { path: { tenant_id: tenantId } },
          body: { principal_id: who ?? "", role: draft.role ?? "", project_id: draft.where || undefined },
        })
      }
      close={close}
    >
      <Text size="sm">You can only assign roles whose permissions you have yourself.</Text>
      {!only && (
        <Select
          label="Name"
          searchable
          data={people.map(({ id, name }) => ({ value: id, label: name }))}
          value={who}
          onChange={setWho}
        />
      )}
      <RoleFields tenantId={tenantId} draft={draft} change={change} />
    </Asking>
  );
}
