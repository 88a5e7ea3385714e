// Who is signed in, where they belong, and which keys they hold there.

import { useQuery } from "@tanstack/react-query";
import { api, queries, type Schemas } from "../api/client";
import { csrfToken } from "../api/csrf";
import { Problem } from "../api/problem";
import { queryClient } from "../api/queryClient";

export type Me = Schemas["WhoamiView"];

/** Nobody is signed in where there is no CSRF cookie: it lives and dies with the session. */
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

/** Nothing of one person stays for the next. */
export function signedOut(): void {
  queryClient.setQueryData(["get", "/v1/whoami"], null);
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[1] !== "/v1/whoami" });
}

/** Whether any of my roles reaches beyond a project: only then the tenant can be asked about at all. */
export function useWide(tenantId: string | undefined): boolean {
  const roles = useMe().data?.roles ?? [];
  return roles.some(
    (one) => one.scope_kind === "platform" || (one.scope_kind === "tenant" && one.scope_id === tenantId),
  );
}

/** Asks whether I hold a key in the project (or tenant). Until that is known, or where nothing of mine reaches, no. */
export function useMay(place: { project_id?: string; tenant_id?: string }): (key: string) => boolean {
  const wide = useWide(place.tenant_id);
  const held = queries.useQuery(
    "get",
    "/v1/whoami/permissions",
    { params: { query: place } },
    { staleTime: 60_000, enabled: wide || place.tenant_id === undefined },
  );
  const keys = new Set(held.data?.permissions);
  return (key) => keys.has(key);
}
