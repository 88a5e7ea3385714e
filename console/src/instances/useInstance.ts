// One instance, and its members in pages.

import { api, queries, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";

export type Instance = Schemas["InstanceView"];

export function useInstance(projectId: string, instanceId: string | undefined) {
  const params = { path: { project_id: projectId, instance_id: instanceId ?? "" }, query: { members: 0 } };
  return queries.useQuery(
    "get",
    "/v1/projects/{project_id}/instances/{instance_id}",
    { params },
    { enabled: Boolean(instanceId) },
  );
}

/** Current members, or with `history` the removed ones. */
export function useMembers(instance: Instance, history: boolean) {
  const path = { project_id: instance.project_id, instance_id: instance.id };
  return usePages("/v1/projects/{project_id}/instances/{instance_id}/members", [instance.id, history], (cursor) =>
    api.GET("/v1/projects/{project_id}/instances/{instance_id}/members", {
      params: { path, query: { history, limit: 50, cursor } },
    }),
  );
}
