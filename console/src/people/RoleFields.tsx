// Where and which role: what can be given in a tenant or one of its projects by whoever asks.

import { Select } from "@mantine/core";
import { queries } from "../api/client";
import { useProjects } from "../app/place";
import { useMay } from "../session/session";

export interface RoleDraft {
  where: string; // a project, or "" for the whole tenant
  role: string | null;
}

interface Props {
  tenantId: string;
  draft: RoleDraft;
  say: (draft: RoleDraft) => void;
  label?: string; // of the role
  hint?: string;
  everywhere?: boolean; // in the whole tenant, and nowhere else
}

export function RoleFields({ tenantId, draft, say, label = "Role", hint, everywhere }: Props) {
  const projects = useProjects(tenantId);
  return (
    <>
      {!everywhere && projects.length > 0 && (
        <Select
          label="Where"
          searchable
          data={[
            { value: "", label: "In the whole tenant" },
            ...projects.map(({ id, name }) => ({ value: id, label: `In ${name}` })),
          ]}
          value={draft.where}
          onChange={(chosen) => say({ where: chosen ?? "", role: null })}
          allowDeselect={false}
        />
      )}
      <Select
        label={label}
        description={hint}
        data={useBindable(tenantId, draft.where)}
        value={draft.role}
        onChange={(role) => say({ ...draft, role })}
        clearable
      />
    </>
  );
}

/** Whoever may not read the roles may still appoint a tenant's administrator: that is how a tenant begins. */
function useBindable(tenantId: string, where: string): string[] {
  const path = { tenant_id: tenantId };
  const may = useMay(path);
  const roles = queries.useQuery(
    "get",
    "/v1/tenants/{tenant_id}/roles",
    { params: { path } },
    { enabled: may("iam.role.read") },
  );
  if (!may("iam.role.read")) return may("iam.tenant_admin.appoint") && !where ? ["tenant_admin"] : [];
  const at = where ? "project" : "tenant";
  return (roles.data?.items ?? []).filter((one) => one.bindable_at.includes(at)).map((one) => one.name);
}
