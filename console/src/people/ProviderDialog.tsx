// Adding an identity provider, or changing what is asked of it.

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
  const said = { name: name.trim(), email_domains: domains, default_role: role };
  const act = () =>
    provider
      ? api.POST("/v1/tenants/{tenant_id}/identity-providers/{provider_id}/update", {
          params: { path: { ...path, provider_id: provider.id } },
          body: secret ? { ...said, client_secret: secret } : said,
        })
      : api.POST("/v1/tenants/{tenant_id}/identity-providers", {
          params: { path },
          body: { ...said, issuer: issuer.trim(), client_id: client.trim(), client_secret: secret || undefined },
        });
  return (
    <Asking
      title={provider ? `Change ${provider.name}` : "Add a provider"}
      size="lg"
      verb={provider ? "Change it" : "Add it"}
      ready={Boolean(name.trim() && /^https?:\/\/\S+$/.test(issuer.trim()) && client.trim())}
      act={act}
      close={close}
    >
      <TextInput
        label="Name"
        description="On the button people press to sign in."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      {!provider && (
        <>
          <TextInput
            label="Issuer"
            description="Its address, as it writes it in its tokens."
            placeholder="https://login.example.com"
            value={issuer}
            onChange={(event) => setIssuer(event.currentTarget.value)}
          />
          <TextInput
            label="Client id"
            description="What this platform is called there."
            value={client}
            onChange={(event) => setClient(event.currentTarget.value)}
          />
        </>
      )}
      <PasswordInput
        label="Client secret"
        description={
          provider?.confidential
            ? "Left empty, the one it has stays."
            : "If the provider gave one. It is sealed at once and shown to nobody."
        }
        autoComplete="off"
        value={secret}
        onChange={(event) => setSecret(event.currentTarget.value)}
      />
      <TagsInput
        label="E-mail domains"
        description="Addresses it may vouch for, such as example.com. None: every address it has verified."
        value={domains}
        onChange={setDomains}
      />
      <RoleFields
        tenantId={tenantId}
        draft={{ where: "", role }}
        say={(draft) => setRole(draft.role)}
        label="Newcomers get"
        hint="A role in the whole tenant, for everybody it knows. Needs e-mail domains. Left empty: only who was invited gets in."
        everywhere
      />
    </Asking>
  );
}
