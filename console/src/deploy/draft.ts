// What a person has said so far about a new instance, and what is still missing.

import { type ComponentRule, componentTitle, type Manifest, type Topology } from "../catalog/manifest";
import { check } from "./schema";

export interface Draft {
  name: string;
  topology: string;
  placement: Record<string, string[]>;
  inputs: Record<string, unknown>;
  operator?: string; // the only service account whose controller may work on it
}

export const NAME = /^[a-z][a-z0-9-]{1,38}[a-z0-9]$/;

export function suggestedName(manifest: Manifest): string {
  return `${manifest.app_slug}-1`;
}

export function howMany({ min, max }: ComponentRule): string {
  if (max === min) return min === 1 ? "One machine" : `${min} machines`;
  return max ? `${min} to ${max} machines` : `At least ${min === 1 ? "one machine" : `${min} machines`}`;
}

/** The first thing that is missing, as a sentence; null when the plan can be asked for. */
export function missing(draft: Draft, topology: Topology, manifest: Manifest): string | null {
  if (!NAME.test(draft.name)) return "Give it a name.";
  for (const [key, rule] of Object.entries(topology.components)) {
    if (rule.shares_with) continue;
    const count = draft.placement[key]?.length ?? 0;
    const title = componentTitle(manifest, key).toLowerCase();
    if (count < rule.min)
      return `Choose ${rule.min === 1 ? "a machine" : `at least ${rule.min} machines`} for the ${title}.`;
    if (rule.max && count > rule.max) return `Choose at most ${rule.max} machines for the ${title}.`;
  }
  return check(manifest.inputs_schema, draft.inputs).length ? "A setting is missing or does not fit yet." : null;
}

/** Machines that another component has already, and what they are there. */
export function takenBy(placement: Draft["placement"], mine: string, manifest: Manifest): Record<string, string> {
  const others = Object.entries(placement).filter(([key]) => key !== mine);
  return Object.fromEntries(
    others.flatMap(([key, ids]) => ids.map((id) => [id, componentTitle(manifest, key).toLowerCase()])),
  );
}
