// The levels of policies: how each is read and changed.

import { api, type Schemas } from "../api/client";
import type { ReadPath } from "../api/usePages";
import type { Rules } from "./fields";

export type Policy = Schemas["PolicyView"];
export type Level = "platform" | "tenant" | "project";

interface Change {
  rules: Rules;
  reason: string;
  enables: string[]; // platform level only: apps that the platform operates
}

interface At {
  path: ReadPath;
  list: (
    id: string,
    cursor: string | undefined,
  ) => Promise<{ data?: { items: Policy[]; next_cursor?: string | null } }>;
  set: (id: string, name: string, change: Change, seen: Seen) => Promise<unknown>;
  remove: (id: string, name: string, seen: Seen) => Promise<unknown>;
  reaches: string;
}

type Seen = Record<"if-match", string> | Record<"if-none-match", string>;

/** An update names the version that was read; a new policy requires that there is none. */
export function seen(policy: Policy | null): Seen {
  return policy ? { "if-match": `"${policy.etag}"` } : { "if-none-match": "*" };
}

const of = {
  project: (project_id: string, policy_name: string) => ({ project_id, policy_name }),
  tenant: (tenant_id: string, policy_name: string) => ({ tenant_id, policy_name }),
};
const body = ({ rules, reason }: Change) => ({ rules, reason });

export const LEVELS: Record<Level, At> = {
  platform: {
    path: "/v1/policies",
    reaches: "every project of the platform",
    list: (_, cursor) => api.GET("/v1/policies", { params: { query: { limit: 50, cursor } } }),
    set: (_, policy_name, change, header) =>
      api.PUT("/v1/policies/{policy_name}", {
        params: { path: { policy_name }, header },
        body: { ...body(change), enables: change.enables.length ? { platform_managed: change.enables } : null },
      }),
    remove: (_, policy_name, header) =>
      api.DELETE("/v1/policies/{policy_name}", { params: { path: { policy_name }, header } }),
  },
  tenant: {
    path: "/v1/tenants/{tenant_id}/policies",
    reaches: "every project of the tenant",
    list: (tenant_id, cursor) =>
      api.GET("/v1/tenants/{tenant_id}/policies", { params: { path: { tenant_id }, query: { limit: 50, cursor } } }),
    set: (id, name, change, header) =>
      api.PUT("/v1/tenants/{tenant_id}/policies/{policy_name}", {
        params: { path: of.tenant(id, name), header },
        body: body(change),
      }),
    remove: (id, name, header) =>
      api.DELETE("/v1/tenants/{tenant_id}/policies/{policy_name}", { params: { path: of.tenant(id, name), header } }),
  },
  project: {
    path: "/v1/projects/{project_id}/policies",
    reaches: "this project",
    list: (project_id, cursor) =>
      api.GET("/v1/projects/{project_id}/policies", { params: { path: { project_id }, query: { limit: 50, cursor } } }),
    set: (id, name, change, header) =>
      api.PUT("/v1/projects/{project_id}/policies/{policy_name}", {
        params: { path: of.project(id, name), header },
        body: body(change),
      }),
    remove: (id, name, header) =>
      api.DELETE("/v1/projects/{project_id}/policies/{policy_name}", {
        params: { path: of.project(id, name), header },
      }),
  },
};
