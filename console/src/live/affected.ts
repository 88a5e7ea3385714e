// Which of the answers we keep an event makes old: a table from how its type begins to parts of API paths.

const AFFECTED: [string, string[]][] = [
  ["apps.operation.", ["/operations", "/instances", "/events"]],
  ["apps.instance.", ["/instances", "/allocations", "/events"]],
  ["apps.member.", ["/instances", "/allocations", "/events"]],
  ["apps.departure.", ["/departure-certificates", "/events"]],
  ["apps.orphan.", ["/orphans", "/events"]],
  ["apps.access.", ["/access-grants", "/events"]],
  ["capacity.", ["/allocations", "/nodes", "/quota", "/events"]],
  ["catalog.", ["/catalog", "/apps", "/entitlements", "/events"]],
  ["policy.", ["/catalog", "/policies", "/policy", "/events"]],
  ["custody.credential.", ["/credentials", "/events"]],
  ["tenancy.delegation.", ["/delegations", "/whoami", "/events"]],
  ["tenancy.", ["/service-accounts", "/whoami", "/members", "/role-bindings", "/users", "/invitations", "/events"]],
];

export function affectedBy(type: string): string[] {
  return AFFECTED.find(([start]) => type.startsWith(start))?.[1] ?? ["/events"];
}
