// The key file of a service account. The private key is created in the browser and never sent.

import { api } from "../api/client";
import { Problem } from "../api/problem";

interface Made {
  privateJwk: JsonWebKey;
  publicJwk: Record<string, unknown>;
}

export async function makeKey(): Promise<Made> {
  const pair = await crypto.subtle.generateKey({ name: "Ed25519" }, true, ["sign", "verify"]).catch(() => {
    throw new Problem(
      0,
      "no_ed25519",
      "This browser does not support Ed25519 keys.",
      "Use a current version of Chrome, Firefox or Safari.",
    );
  });
  const { kty, crv, x, d } = await crypto.subtle.exportKey("jwk", (pair as CryptoKeyPair).privateKey);
  return { privateJwk: { kty, crv, x, d }, publicJwk: { kty, crv, x } };
}

const ACCOUNT = "/v1/projects/{project_id}/service-accounts/{account_id}" as const;

export async function createAccount(projectId: string, name: string, role: string): Promise<void> {
  const { privateJwk, publicJwk } = await makeKey();
  const { data } = await api.POST("/v1/projects/{project_id}/service-accounts", {
    params: { path: { project_id: projectId } },
    body: { name, public_jwk: publicJwk, roles: [role] },
  });
  if (!data) return;
  const path = { project_id: projectId, account_id: data.id };
  const keys = await api.GET(`${ACCOUNT}/keys`, { params: { path } });
  save(name, projectId, data.id, keys.data?.items[0]?.id ?? "", privateJwk);
}

export async function addKey(projectId: string, account: { id: string; name: string }): Promise<void> {
  const { privateJwk, publicJwk } = await makeKey();
  const path = { project_id: projectId, account_id: account.id };
  const { data } = await api.POST(`${ACCOUNT}/keys`, { params: { path }, body: { public_jwk: publicJwk } });
  if (data) save(account.name, projectId, account.id, data.id, privateJwk);
}

/** The file that the SDK, the CLI and operators read. */
function save(name: string, projectId: string, id: string, keyId: string, privateJwk: JsonWebKey): void {
  const identity = {
    private_jwk: privateJwk,
    project_id: projectId,
    api: window.location.origin,
    id,
    issuer: "gpuaas",
    source_addresses: [],
    key_id: keyId,
  };
  const file = new Blob([`${JSON.stringify(identity, null, 2)}\n`], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `${name}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
