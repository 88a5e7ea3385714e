// The current project and tenant: from the address, or the last ones visited.

import { useParams } from "react-router";
import { api, queries } from "../api/client";
import { useEvery } from "../api/usePages";
import { type Me, useMe } from "../session/session";

const REMEMBERED = "gpuaas.project";
export type Project = Me["projects"][number];

export interface Place {
  project: Project | undefined;
  tenant: Me["tenants"][number] | undefined;
}

export function usePlace(): Place {
  const { projectId, tenantId } = useParams();
  const me = useMe().data;
  const remembered = localStorage.getItem(REMEMBERED);
  const projects = me?.projects ?? [];
  const listed = projects.find((one) => one.id === (projectId ?? remembered));
  const further = useFurther(me, listed ? undefined : (projectId ?? remembered));
  const project = listed ?? further ?? (projectId ? undefined : projects[0]);
  if (project && project.id === projectId) localStorage.setItem(REMEMBERED, project.id);
  const wanted = tenantId ?? project?.tenant_id ?? (projectId ? undefined : me?.tenants[0]?.id);
  const mine = me?.tenants.find((one) => one.id === wanted);
  const other = queries.useQuery(
    "get",
    "/v1/tenants/{tenant_id}",
    { params: { path: { tenant_id: wanted ?? "" } } },
    { enabled: Boolean(me && wanted && !mine), staleTime: 60_000 }, // platform administrators open tenants they are not in
  );
  return { project, tenant: mine ?? (wanted ? other.data : undefined) };
}

/** A project that whoami does not list. */
function useFurther(me: Me | null | undefined, id: string | null | undefined): Project | undefined {
  const found = queries.useQuery(
    "get",
    "/v1/projects/{project_id}",
    { params: { path: { project_id: id ?? "" } } },
    { enabled: Boolean(id && me?.more_projects), staleTime: 60_000, retry: false },
  );
  return id ? found.data : undefined;
}

/** All projects of a tenant that the user can see; whoami lists only the first ones. */
export function useProjects(tenantId: string | undefined): Project[] {
  const me = useMe().data;
  const query = { tenant_id: tenantId, limit: 200 };
  const every = useEvery(
    "/v1/projects",
    query,
    (cursor) => api.GET("/v1/projects", { params: { query: { ...query, cursor } } }),
    Boolean(tenantId && me?.more_projects),
  );
  const some = (me?.projects ?? []).filter((one) => one.tenant_id === tenantId);
  return every.data ?? some;
}

/** The project ID in the address. */
export function useProjectId(): string {
  return useParams().projectId ?? "";
}
