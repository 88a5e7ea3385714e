// The input for a new instance, and what is still missing.

import { type ComponentRule, componentTitle, type Manifest, type Topology } from "../catalog/manifest";
import { check } from "./schema";

export interface Draft {
  name: string;
  topology: string;
  placement: Record<string, string[]>;
  inputs: Record<string, unknown>;
  operator?: string; // the only service account that may work on it
}

export const NAME = /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/;

/** The first free name: the app's with a number. */
export function suggestedName(manifest: Manifest, taken: string[]): string {
  let number = 1;
  while (taken.includes(`${manifest.app_slug}-${number}`)) number++;
  return `${manifest.app_slug}-${number}`;
}

export function howMany({ min, max }: ComponentRule): string {
  if (max === min) return min === 1 ? "One machine" : `${min} machines`;
  return max ? `${min} to ${max} machines` : `At least ${min === 1 ? "one machine" : `${min} machines`}`;
}

/** The first missing input as a sentence; null when the plan can be checked. */
export function missing(draft: Draft, topology: Topology, manifest: Manifest): string | null {
  if (!NAME.test(draft.name)) return "Enter a name.";
  for (const [key, rule] of Object.entries(topology.components)) {
    if (rule.shares_with) continue;
    const count = draft.placement[key]?.length ?? 0;
    const title = componentTitle(manifest, key).toLowerCase();
    if (count < rule.min)
      return `Choose ${rule.min === 1 ? "a machine" : `at least ${rule.min} machines`} for the ${title}.`;
    if (rule.max && count > rule.max) return `Choose at most ${rule.max} machines for the ${title}.`;
  }
  return check(manifest.inputs_schema, draft.inputs).length ? "A setting is missing or invalid." : null;
}

/** Machines that are selected for another component, and its name. Components that may share a machine do not count. */
export function takenBy(
  placement: Draft["placement"],
  mine: string,
  topology: Topology,
  manifest: Manifest,
): Record<string, string> {
  const rules = topology.components;
  const mayShare = (key: string) => rules[mine]?.may_share_with === key || rules[key]?.may_share_with === mine;
  const others = Object.entries(placement).filter(([key]) => key !== mine && !mayShare(key));
  return Object.fromEntries(
    others.flatMap(([key, ids]) => ids.map((id) => [id, componentTitle(manifest, key).toLowerCase()])),
  );
}
