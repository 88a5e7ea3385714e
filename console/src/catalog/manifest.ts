// The app manifest: all the console knows about an app.

import type { RJSFSchema } from "@rjsf/utils";
import { displayName } from "../parts/names";

export interface ComponentRule {
  min: number;
  max?: number | null;
  shares_with?: string | null; // always on the machine of this component
  may_share_with?: string | null; // may be on a machine of this component
}

export interface Topology {
  key: string;
  title: string;
  components: Record<string, ComponentRule>;
}

export interface Manifest {
  app_slug: string;
  version: string;
  title: string;
  summary?: string;
  runtime_backend: string;
  components: { key: string; title: string }[];
  topologies: Topology[];
  inputs_schema: RJSFSchema;
  actions?: { key: string; title: string; target: "instance" | "member" }[];
  health?: { key?: string; title?: string }[];
  docs?: Record<string, string>;
}

export function componentTitle(manifest: Manifest | undefined, key: string): string {
  return manifest?.components.find((one) => one.key === key)?.title ?? displayName(key);
}

export function topologyTitle(manifest: Manifest | undefined, key: string): string {
  return manifest?.topologies.find((one) => one.key === key)?.title ?? displayName(key);
}

export function conditionTitle(manifest: Manifest | undefined, type: string): string {
  return manifest?.health?.find((one) => one.key === type)?.title ?? displayName(type);
}

/** The app's title of an action; undefined where the app does not offer it. */
export function actionTitle(
  manifest: Manifest | undefined,
  target: "instance" | "member",
  key: string,
): string | undefined {
  return manifest?.actions?.find((one) => one.key === key && one.target === target)?.title;
}
