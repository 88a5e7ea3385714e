// Names of members, and members grouped by machine.

import type { Schemas } from "../api/client";
import { type ComponentRule, componentTitle, type Manifest } from "../catalog/manifest";
import { displayName } from "../parts/names";

export type Member = Schemas["MemberView"];

/** The same name as in the CLI; also what is typed to confirm. */
export function memberName(member: Pick<Member, "component_key" | "ordinal">): string {
  return `${member.component_key}/${member.ordinal}`;
}

export interface Host {
  id: string; // the allocation
  name: string;
  address: string;
  members: Member[];
  hub: boolean; // runs a component of which there is only one
}

/** Machines with their members; machines with a single-instance component come first. */
export function hostsOf(members: Member[], topology: string, manifest: Manifest | undefined): Host[] {
  const rules = rulesOf(topology, manifest);
  const hosts = new Map<string, Host>();
  for (const member of members) {
    const host = hosts.get(member.allocation_id) ?? {
      id: member.allocation_id,
      name: member.node_name,
      address: member.address,
      members: [],
      hub: false,
    };
    host.members.push(member);
    host.hub ||= onlyOne(rules[member.component_key]);
    hosts.set(host.id, host);
  }
  return [...hosts.values()].sort((a, b) => Number(b.hub) - Number(a.hub) || a.name.localeCompare(b.name));
}

function rulesOf(topology: string, manifest: Manifest | undefined): Record<string, ComponentRule> {
  return manifest?.topologies.find((one) => one.key === topology)?.components ?? {};
}

function onlyOne(rule: ComponentRule | undefined): boolean {
  return rule?.max === 1 && !rule.shares_with;
}

/** One box of the diagram: a machine with its members, or for many machines a component with its states. */
export interface Block {
  id: string;
  title: string;
  hub: boolean;
  machine: boolean;
  member: string | null; // opened on click
  lines: { id: string; text: string; state: string }[];
}

export function machineBlocks(members: Member[], topology: string, manifest: Manifest | undefined): Block[] {
  return hostsOf(members, topology, manifest).map((host) => ({
    id: host.id,
    title: host.name,
    hub: host.hub,
    machine: true,
    member: host.members[0]?.id ?? null,
    lines: host.members.map((member) => ({ id: member.id, text: memberName(member), state: member.state })),
  }));
}

export function componentBlocks(
  counts: Schemas["MemberCount"][],
  topology: string,
  manifest: Manifest | undefined,
): Block[] {
  const rules = rulesOf(topology, manifest);
  const keys = [...new Set(counts.map((one) => one.component_key))];
  return keys.map((key) => {
    const mine = counts.filter((one) => one.component_key === key).sort((a, b) => b.count - a.count);
    const total = mine.reduce((sum, one) => sum + one.count, 0);
    return {
      id: key,
      title: `${componentTitle(manifest, key)}${total > 1 ? ` × ${total}` : ""}`,
      hub: onlyOne(rules[key]),
      machine: false,
      member: null,
      lines: mine.map(({ state, count }) => ({ id: state, text: String(count), state })),
    };
  });
}

/** The diagram as text, for screen readers. */
export function describe(blocks: Block[]): string {
  const what = blocks.some((one) => one.machine) ? `Members on ${blocks.length} machines` : "Members by component";
  const each = blocks.map(
    (one) => `${one.title}: ${one.lines.map((line) => `${line.text} ${displayName(line.state)}`).join(", ")}`,
  );
  return `${what}. ${each.join(". ")}.`;
}
