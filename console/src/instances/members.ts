// Members by name, and as they stand on machines.

import type { Schemas } from "../api/client";
import type { Manifest } from "../catalog/manifest";

export type Member = Schemas["MemberView"];

/** What a person types to confirm: the machine it is on, which is what would be hit. */
export function memberName(member: Member): string {
  return member.node_name;
}

export interface Host {
  id: string; // the allocation
  name: string;
  address: string;
  members: Member[];
  hub: boolean; // has a component of which there is only one
}

/** Machines with their members; those that everything hangs on come first. */
export function hostsOf(members: Member[], topology: string, manifest: Manifest | undefined): Host[] {
  const rules = manifest?.topologies.find((one) => one.key === topology)?.components ?? {};
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
    host.hub ||= rules[member.component_key]?.max === 1 && !rules[member.component_key]?.shares_with;
    hosts.set(host.id, host);
  }
  return [...hosts.values()].sort((a, b) => Number(b.hub) - Number(a.hub) || a.name.localeCompare(b.name));
}
