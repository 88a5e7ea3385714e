// Scope and role: the roles that can be assigned in a tenant or one of its projects.

import { Select } from "@mantine/core";
import { queries } from "../api/client";
import { useProjects } from "../app/place";
import { roleName } from "../parts/names";
import { useMay } from "../session/session";

export interface RoleDraft {
  where: string; // a project, or "" for the whole tenant
  role: string | null;
}

interface Props {
  tenantId: string;
  draft: RoleDraft;
  change: (draft: RoleDraft) => void;
  label?: string; // of the role
  hint?: string;
  everywhere?: boolean; // only in the whole tenant
}

export function RoleFields({ tenantId, draft, change, label = "Role", hint, everywhere }: Props) {
  const projects = useProjects(tenantId);
  return (
    <>
      {!everywhere && projects.length > 0 && (
        <Select
          label="Scope"
          searchable
          data={[{ value: "", label: "Whole tenant" }, ...projects.map(({ id, name }) => ({ value: id, label: name }))]}
          value={draft.where}
          onChange={(chosen) => change({ where: chosen ?? "", role: null })}
          allowDeselect={false}
        />
      )}
      <Select
        label={label}
        description={hint}
        data={useBindable(tenantId, draft.where).map((role) => ({ value: role, label: roleName(role) }))}
        value={draft.role}
        onChange={(role) => change({ ...draft, role })}
        clearable
      />
    </>
  );
}

/** A platform administrator cannot read a tenant's roles but appoints its first administrator. */
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
