// All people and role assignments of a tenant, for showing names and roles next to IDs.

import { api, type Schemas } from "../api/client";
import { useEvery } from "../api/usePages";
import { usePlace, useProjects } from "../app/place";
import { useMay } from "../session/session";

export type Binding = Schemas["BindingView"];
export type Person = Schemas["PrincipalView"];
export const AGENT = "node_agent"; // the role of a machine's agent; it ends when the machine is retired

export function usePeople(tenantId: string) {
  const path = { tenant_id: tenantId };
  const may = useMay(path);
  return useEvery(
    "/v1/tenants/{tenant_id}/users",
    path,
    (cursor) => api.GET("/v1/tenants/{tenant_id}/users", { params: { path, query: { limit: 100, cursor } } }),
    may("tenancy.user.read"),
  );
}

export function useBindings(tenantId: string) {
  const path = { tenant_id: tenantId };
  const may = useMay(path);
  return useEvery(
    "/v1/tenants/{tenant_id}/role-bindings",
    path,
    (cursor) => api.GET("/v1/tenants/{tenant_id}/role-bindings", { params: { path, query: { limit: 100, cursor } } }),
    may("iam.binding.read"),
  );
}

/** The scope of an assignment as text. */
export function usePlaceOf(): (one: Pick<Binding, "scope_kind" | "scope_id" | "role">) => string {
  const projects = useProjects(usePlace().tenant?.id);
  return (one) => {
    if (one.scope_kind === "tenant") return "the whole tenant";
    if (one.role === AGENT) return "its machine";
    return projects.find((each) => each.id === one.scope_id)?.name ?? one.scope_id;
  };
}
