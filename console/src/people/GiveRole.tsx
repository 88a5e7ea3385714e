// Giving somebody a role.

import { Select, Text } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Asking } from "../parts/Asking";
import { type RoleDraft, RoleFields } from "./RoleFields";

interface Props {
  tenantId: string;
  people: { id: string; name: string }[]; // to choose among; one alone is meant already
  projectId?: string; // where one looks
  close: () => void;
}

export function GiveRole({ tenantId, people, projectId, close }: Props) {
  const only = people.length === 1 ? people[0] : undefined;
  const [who, setWho] = useState<string | null>(only?.id ?? null);
  const [draft, say] = useState<RoleDraft>({ where: projectId ?? "", role: null });
  return (
    <Asking
      title={only ? `Give ${only.name} a role` : "Give a role"}
      verb="Give it"
      ready={Boolean(who && draft.role)}
      act={() =>
        api.POST("/v1/tenants/{tenant_id}/role-bindings", {
          params: { path: { tenant_id: tenantId } },
          body: { principal_id: who ?? "", role: draft.role ?? "", project_id: draft.where || undefined },
        })
      }
      close={close}
    >
      <Text size="sm">Nobody gives what they do not hold themselves.</Text>
      {!only && (
        <Select
          label="Who"
          searchable
          data={people.map(({ id, name }) => ({ value: id, label: name }))}
          value={who}
          onChange={setWho}
        />
      )}
      <RoleFields tenantId={tenantId} draft={draft} say={say} />
    </Asking>
  );
}
