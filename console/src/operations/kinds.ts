// Operations in words: what kind they are, and the steps they went through.

import type { Schemas } from "../api/client";
import { words } from "../parts/tone";

export type Operation = Schemas["OperationView"];
export type PlatformEvent = Schemas["EventView"];
export const FINAL = new Set(["succeeded", "failed", "canceled", "superseded", "needs_attention"]);

export function kindWords(kind: string): string {
  return words(kind);
}

export interface Step {
  number: number;
  title: string;
  phase: string;
  at: string;
  until: string | null; // when the next one began, or the operation ended
}

/** The steps as they happened: each event that told another sentence. A new claim may begin again in front. */
export function stepsOf(events: PlatformEvent[], finishedAt: string | null): Step[] {
  const told = events.filter((event) => event.type === "apps.operation.progressed" && event.data.message);
  const steps: Step[] = [];
  for (const event of told) {
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
