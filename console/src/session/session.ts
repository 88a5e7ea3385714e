// The signed-in user, their tenants and projects, and their permissions.

import { useQuery } from "@tanstack/react-query";
import { api, queries, type Schemas } from "../api/client";
import { csrfToken } from "../api/csrf";
import { Problem } from "../api/problem";
import { queryClient } from "../api/queryClient";

export type Me = Schemas["WhoamiView"];

/** Without a CSRF cookie there is no session: both have the same lifetime. */
export function useMe() {
  return useQuery({
    queryKey: ["get", "/v1/whoami"],
    queryFn: async (): Promise<Me | null> => {
      if (!csrfToken()) return null;
      try {
        return (await api.GET("/v1/whoami")).data ?? null;
      } catch (error) {
        if (error instanceof Problem && error.status === 401) return null;
        throw error;
      }
    },
    staleTime: 60_000,
  });
}

export async function signIn(email: string, password: string, tenant: string | undefined): Promise<void> {
  await api.POST("/v1/auth/session", { body: { email, password, tenant: tenant || undefined } });
  await queryClient.invalidateQueries();
}

export async function signOut(): Promise<void> {
  await api.POST("/v1/sign-out").catch(() => {});
  signedOut();
}

/** Clears everything the previous user read. */
export function signedOut(): void {
  queryClient.setQueryData(["get", "/v1/whoami"], null);
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[1] !== "/v1/whoami" });
}

/** Whether the user has a role beyond a project: only then can tenant pages be read. */
export function useWide(tenantId: string | undefined): boolean {
  const roles = useMe().data?.roles ?? [];
  return roles.some(
    (one) => one.scope_kind === "platform" || (one.scope_kind === "tenant" && one.scope_id === tenantId),
  );
}

/** Whether the user has a permission in the project or tenant; false until that is known. */
export function useMay(place: { project_id?: string; tenant_id?: string }): (key: string) => boolean {
  const wide = useWide(place.tenant_id);
  const held = usePermissions(place, wide || place.tenant_id === undefined);
  return (key) => held?.has(key) ?? false;
}

/** The user's permissions in the project or tenant; undefined until they are known. */
export function usePermissions(
  place: { project_id?: string; tenant_id?: string },
  enabled: boolean,
): Set<string> | undefined {
  const held = queries.useQuery(
    "get",
    "/v1/whoami/permissions",
    { params: { query: place } },
    { staleTime: 60_000, enabled },
  );
  return held.data && new Set(held.data.permissions);
}
