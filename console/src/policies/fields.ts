// The fields of policies with their titles, and rules as text.

import type { Schemas } from "../api/client";
import { displayName } from "../parts/names";

export type Rules = Schemas["Rules"];
export type Field = keyof Rules;
export interface Lists {
  only: string[] | null; // null: no such list; an empty list allows nothing
  deny: string[];
}

export const FIELDS: [field: Field, title: string, names?: string[]][] = [
  ["apps", "Apps"],
  ["regions", "Regions"],
  ["skus", "SKUs"],
  ["artifact_sources", "Artifact sources"],
  ["operating_modes", "Operating modes", ["tenant_dedicated", "platform_managed"]],
  ["control_plane_scopes", "Control plane scopes", ["project", "tenant", "platform"]],
  ["tenant_boundary_modes", "Boundaries", ["tenant_isolated", "shared_service"]],
  ["runtime_backends", "Runtime backends"],
];

export function fieldTitle(field: string): string {
  return FIELDS.find(([key]) => key === field)?.[1] ?? displayName(field);
}

/** A rule as text: "only a, b; not c". */
export function ruleWords(rule: { only?: string[] | null; deny?: string[] | null }): string {
  const parts = [];
  if (rule.only) parts.push(rule.only.length ? `only ${rule.only.join(", ")}` : "none");
  if (rule.deny?.length) parts.push(`not ${rule.deny.join(", ")}`);
  return parts.join("; ");
}

export type Draft = Partial<Record<Field, Lists>>;

export function draftOf(rules: Record<string, unknown> | null | undefined): Draft {
  const known = (rules ?? {}) as Record<string, { only?: string[] | null; deny?: string[] | null }>;
  return Object.fromEntries(
    Object.entries(known).map(([field, rule]) => [field, { only: rule.only ?? null, deny: rule.deny ?? [] }]),
  );
}

/** The rules to send, without empty fields. */
export function rulesOf(draft: Draft): Rules {
  const sent = Object.entries(draft).flatMap(([field, { only, deny }]) => {
    if (only === null && !deny.length) return [];
    return [[field, { ...(only === null ? {} : { only }), ...(deny.length ? { deny } : {}) }]];
  });
  return Object.fromEntries(sent);
}
