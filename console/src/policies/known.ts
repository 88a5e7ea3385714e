// Suggestions for rule values, as far as the user may read them. Other values can be typed.

import { api } from "../api/client";
import { useEvery } from "../api/usePages";
import { usePlace } from "../app/place";
import { useMay } from "../session/session";
import { FIELDS, type Field } from "./fields";

const query = (cursor: string | undefined) => ({ limit: 200, cursor });

export function useKnown(): (field: Field) => string[] {
  const path = { tenant_id: usePlace().tenant?.id ?? "" };
  const ofTenant = useMay(path.tenant_id ? path : {})("artifacts.tenant_source.read") && Boolean(path.tenant_id);
  const ofPlatform = useMay({})("artifacts.platform_source.read");
  const apps = useEvery("/v1/apps", "known", (cursor) => api.GET("/v1/apps", { params: { query: query(cursor) } }));
  const regions = useEvery("/v1/regions", "known", (cursor) =>
    api.GET("/v1/regions", { params: { query: query(cursor) } }),
  );
  const skus = useEvery("/v1/skus", "known", (cursor) => api.GET("/v1/skus", { params: { query: query(cursor) } }));
  const theirs = useEvery(
    "/v1/tenants/{tenant_id}/artifact-sources",
    path,
    (cursor) => api.GET("/v1/tenants/{tenant_id}/artifact-sources", { params: { path, query: query(cursor) } }),
    ofTenant,
  );
  const shared = useEvery(
    "/v1/artifact-sources",
    "platform",
    (cursor) => api.GET("/v1/artifact-sources", { params: { query: query(cursor) } }),
    ofPlatform,
  );
  const known: Partial<Record<Field, string[]>> = {
    apps: apps.data?.map((one) => one.slug),
    regions: regions.data?.map((one) => one.name),
    skus: skus.data?.map((one) => one.name),
    artifact_sources: [...(shared.data ?? []), ...(theirs.data ?? [])].map((one) => one.policy_name),
  };
  return (field) => [...new Set(known[field] ?? FIELDS.find(([key]) => key === field)?.[2] ?? [])];
}
