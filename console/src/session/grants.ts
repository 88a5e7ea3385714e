// Which of the platform's roles has a permission, from contracts/permissions.json.

import { ROLES } from "../api/facts.gen";

const LEAST_FIRST = ["project_viewer", "project_member", "project_admin", "tenant_admin", "platform_admin"] as const;
const KNOWN: Record<string, readonly string[]> = ROLES;

export function grants(role: string, permission: string): boolean {
  return KNOWN[role]?.includes(permission) ?? false;
}

/** The smallest role that has a permission. */
export function leastRole(permission: string): string | undefined {
  return LEAST_FIRST.find((role) => grants(role, permission));
}
