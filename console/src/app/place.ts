// Where the person is: the project and tenant of the address, or those they looked at last.

import { useParams } from "react-router";
import { queries } from "../api/client";
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
  const project = projects.find((one) => one.id === (projectId ?? remembered)) ?? (projectId ? undefined : projects[0]);
  if (project && project.id === projectId) localStorage.setItem(REMEMBERED, project.id);
  const wanted = tenantId ?? project?.tenant_id ?? (projectId ? undefined : me?.tenants[0]?.id);
  const mine = me?.tenants.find((one) => one.id === wanted);
  const other = queries.useQuery(
    "get",
    "/v1/tenants/{tenant_id}",
    { params: { path: { tenant_id: wanted ?? "" } } },
    { enabled: Boolean(me && wanted && !mine), staleTime: 60_000 }, // the platform's people look into tenants, too
  );
  return { project, tenant: mine ?? (wanted ? other.data : undefined) };
}

/** On pages of a project: its id, from the address. */
export function useProjectId(): string {
  return useParams().projectId ?? "";
}
