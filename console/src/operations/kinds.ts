// Names of operation kinds, and the steps of an operation.

import type { Schemas } from "../api/client";
import { STATES } from "../api/facts.gen";
import { displayName } from "../parts/names";

export type Operation = Schemas["OperationView"];
export type PlatformEvent = Schemas["EventView"];
export const isFinal = (operation: Operation) =>
  (STATES.operation.terminal as readonly string[]).includes(operation.status);

export function kindName(kind: string): string {
  return displayName(kind);
}

export interface Step {
  number: number;
  title: string;
  phase: string;
  at: string;
  until: string | null; // when the next one began, or the operation ended
}

/** One step per progress message. A new claim may start again at an earlier step. */
export function stepsOf(events: PlatformEvent[], finishedAt: string | null): Step[] {
  const reports = events.filter((event) => event.type === "apps.operation.progressed" && event.data.message);
  const steps: Step[] = [];
  for (const event of reports) {
    const { message, phase, step } = event.data as { message: string; phase: string; step: number };
    const last = steps.at(-1);
    if (last?.title === message) continue;
    if (last) last.until = event.time;
    steps.push({ number: step, title: message, phase, at: event.time, until: null });
  }
  const last = steps.at(-1);
  if (last) last.until = finishedAt;
  return steps;
}
