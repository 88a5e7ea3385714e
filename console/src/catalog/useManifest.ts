// The manifest of an instance's version.

import { queries } from "../api/client";
import type { Manifest } from "./manifest";

/** `settled`: the manifest is there, or will not come. */
export function useManifestQuery(appSlug: string | undefined, version: string | undefined) {
  const path = { app_slug: appSlug ?? "", version: version ?? "" };
  const asked = queries.useQuery(
    "get",
    "/v1/apps/{app_slug}/versions/{version}",
    { params: { path } },
    { enabled: Boolean(appSlug && version), staleTime: 600_000 },
  );
  return { manifest: asked.data?.manifest as unknown as Manifest | undefined, settled: !asked.isPending };
}

export function useManifest(appSlug: string | undefined, version: string | undefined): Manifest | undefined {
  return useManifestQuery(appSlug, version).manifest;
}
