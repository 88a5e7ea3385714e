// Which of a project's machines are available, and why the others are not.

import type { Schemas } from "../api/client";

export type Allocation = Schemas["AllocationView"];

/** Why the machine is not available; null if it is. */
export function whyNot(
  machine: Allocation,
  backend: string | undefined,
  taken: Record<string, string> = {},
): string | null {
  if (machine.in_use_by) return `Used by ${machine.in_use_by.instance_name}`;
  if (machine.state !== "active") return `Being ${machine.state === "releasing" ? "released" : machine.state}`;
  if (machine.scheduler_type && backend && machine.scheduler_type !== backend)
    return `Reserved for ${machine.scheduler_type}`;
  if (machine.node_state !== "ready" && machine.node_state !== "cordoned") return `Machine is ${machine.node_state}`;
  const other = taken[machine.id];
  return other ? `Selected as ${other}` : null;
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

/** By name, unavailable machines last. A machine selected elsewhere keeps its place, so the list does not jump. */
export function inOrder(machines: Allocation[], backend: string | undefined): Allocation[] {
  const out = (machine: Allocation) => Number(whyNot(machine, backend) !== null);
  return machines.toSorted((a, b) => out(a) - out(b) || a.name.localeCompare(b.name));
}
