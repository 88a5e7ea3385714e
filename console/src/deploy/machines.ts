// Which of a project's machines can be chosen, and why not the others.

import type { Schemas } from "../api/client";

export type Allocation = Schemas["AllocationView"];

/** Why this one cannot be chosen; nothing if it can. */
export function whyNot(
  machine: Allocation,
  backend: string | undefined,
  taken: Record<string, string> = {},
): string | null {
  if (machine.in_use_by) return `Used by ${machine.in_use_by.instance_name}`;
  if (machine.state !== "active") return `The allocation is ${machine.state}`;
  if (machine.scheduler_type && backend && machine.scheduler_type !== backend)
    return `Kept for ${machine.scheduler_type}`;
  if (machine.node_state !== "ready" && machine.node_state !== "cordoned")
    return `The machine is ${machine.node_state}`;
  const other = taken[machine.id];
  return other ? `Chosen as ${other}` : null;
}

export function about(machine: Allocation): string {
  const { cpus, memory_mb } = machine.facts as { cpus?: number; memory_mb?: number };
  const parts = [
    machine.gpus ? `${machine.gpus} GPU${machine.gpus === 1 ? "" : "s"}` : "no GPU",
    cpus ? `${cpus} CPUs` : "",
    memory_mb ? `${Math.round(memory_mb / 1024)} GiB` : "",
    machine.address,
  ];
  return parts.filter(Boolean).join(" · ");
}

/** By name, what nobody could choose last. What is chosen elsewhere keeps its place: nothing jumps under the pointer. */
export function inOrder(machines: Allocation[], backend: string | undefined): Allocation[] {
  const out = (machine: Allocation) => Number(whyNot(machine, backend) !== null);
  return machines.toSorted((a, b) => out(a) - out(b) || a.name.localeCompare(b.name));
}
