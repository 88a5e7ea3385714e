// The manifest of the version an instance has.

import { queries } from "../api/client";
import type { Manifest } from "./manifest";

export function useManifest(appSlug: string | undefined, version: string | undefined) {
  const path = { app_slug: appSlug ?? "", version: version ?? "" };
  const asked = queries.useQuery(
    "get",
    "/v1/apps/{app_slug}/versions/{version}",
    { params: { path } },
    { enabled: Boolean(appSlug && version), staleTime: 600_000 },
  );
  return asked.data?.manifest as unknown as Manifest | undefined;
}
