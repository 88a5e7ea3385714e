// What an app says of itself in its manifest: the console knows apps only through this.

import type { RJSFSchema } from "@rjsf/utils";

export interface ComponentRule {
  min: number;
  max?: number | null;
  shares_with?: string | null;
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
  return manifest?.components.find((one) => one.key === key)?.title ?? key;
}

export function topologyTitle(manifest: Manifest | undefined, key: string): string {
  return manifest?.topologies.find((one) => one.key === key)?.title ?? key;
}

export function conditionTitle(manifest: Manifest | undefined, type: string): string {
  return manifest?.health?.find((one) => one.key === type)?.title ?? type;
}

/** The app's own word for an action; undefined where the app does not offer it. */
export function actionTitle(
  manifest: Manifest | undefined,
  target: "instance" | "member",
  key: string,
): string | undefined {
  return manifest?.actions?.find((one) => one.key === key && one.target === target)?.title;
}
