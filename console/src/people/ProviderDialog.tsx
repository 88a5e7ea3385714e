// Adds or edits an identity provider.

import { PasswordInput, TagsInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { Asking } from "../parts/Asking";
import { RoleFields } from "./RoleFields";

interface Props {
  tenantId: string;
  provider: Schemas["ProviderView"] | null; // null: a new one
  close: () => void;
}

export function ProviderDialog({ tenantId, provider, close }: Props) {
  const [name, setName] = useState(provider?.name ?? "");
  const [issuer, setIssuer] = useState(provider?.issuer ?? "");
  const [client, setClient] = useState(provider?.client_id ?? "");
  const [secret, setSecret] = useState("");
  const [domains, setDomains] = useState(provider?.email_domains ?? []);
  const [role, setRole] = useState(provider?.default_role ?? null);
  const path = { tenant_id: tenantId };
  const fields = { name: name.trim(), email_domains: domains, default_role: role };
  const act = () =>
    provider
      ? api.POST("/v1/tenants/{tenant_id}/identity-providers/{provider_id}/update", {
          params: { path: { ...path, provider_id: provider.id } },
          body: secret ? { ...fields, client_secret: secret } : fields,
        })
      : api.POST("/v1/tenants/{tenant_id}/identity-providers", {
          params: { path },
          body: { ...fields, issuer: issuer.trim(), client_id: client.trim(), client_secret: secret || undefined },
        });
  return (
    <Asking
      title={provider ? `Edit ${provider.name}` : "Add provider"}
      size="lg"
      verb={provider ? "Save" : "Add provider"}
      ready={Boolean(name.trim() && /^https?:\/\/\S+$/.test(issuer.trim()) && client.trim())}
      act={act}
      close={close}
    >
      <TextInput
        label="Name"
        description="Shown on the sign-in button."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      {!provider && (
        <>
          <TextInput
            label="Issuer"
            description="The issuer URL as in its tokens."
            placeholder="https://login.example.com"
            value={issuer}
            onChange={(event) => setIssuer(event.currentTarget.value)}
          />
          <TextInput
            label="Client ID"
            description="The ID of this platform at the provider."
            value={client}
            onChange={(event) => setClient(event.currentTarget.value)}
          />
        </>
      )}
      <PasswordInput
        label="Client secret"
        description={
          provider?.confidential
            ? "Leave empty to keep the current secret."
            : "Optional. Stored encrypted and never shown."
        }
        autoComplete="off"
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
      />
      <TagsInput
        label="E-mail domains"
        description="Accepted domains, for example example.com. Leave empty to accept every verified address."
        value={domains}
        onChange={setDomains}
      />
      <RoleFields
        tenantId={tenantId}
        draft={{ where: "", role }}
        change={(draft) => setRole(draft.role)}
        label="Default role"
        hint="Optional. Assigned in the tenant to everyone who signs in through this provider; needs e-mail domains. Without it, only invited people can sign in."
        everywhere
      />
    </Asking>
  );
}
