// The OpenID Connect providers of a tenant. Their secrets are never shown.

import { Card, Group, Text } from "@mantine/core";
import { IconDoorEnter } from "@tabler/icons-react";
import { useState } from "react";
import { useParams } from "react-router";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Cards } from "../parts/Cards";
import { Confirm } from "../parts/Confirm";
import { CopyLine } from "../parts/Copy";
import { Facts } from "../parts/Facts";
import { roleName } from "../parts/names";
import { Empty, Page } from "../parts/Page";
import { Time } from "../parts/Time";
import { Verbs } from "../parts/Verbs";
import { Begin } from "../session/Refused";
import { useMay } from "../session/session";
import { ProviderDialog } from "./ProviderDialog";

type Provider = Schemas["ProviderView"];
type Asked = "update" | "remove";
const VERBS: Record<Asked, { verb: string; permission: string }> = {
  update: { verb: "Edit", permission: "tenancy.identity_provider.update" },
  remove: { verb: "Delete", permission: "tenancy.identity_provider.delete" },
};

export function ProvidersPage() {
  const { tenantId = "" } = useParams();
  const [making, make] = useState(false);
  const path = { tenant_id: tenantId };
  const found = usePages("/v1/tenants/{tenant_id}/identity-providers", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/identity-providers", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Page
      title="Identity providers"
      about="OpenID Connect providers people can sign in with, in addition to e-mail and password."
      actions={
        <Begin permission="tenancy.identity_provider.create" place={path} act={() => make(true)}>
          Add provider
        </Begin>
      }
    >
      <Cards
        of={found}
        empty={
          <Empty icon={<IconDoorEnter size={32} />} title="No identity providers yet">
            People sign in with e-mail and password. You can add any OpenID Connect provider.
          </Empty>
        }
      >
        {(one) => <One key={one.id} one={one} tenantId={tenantId} />}
      </Cards>
      {making && <ProviderDialog tenantId={tenantId} provider={null} close={() => make(false)} />}
    </Page>
  );
}

function One({ one, tenantId }: { one: Provider; tenantId: string }) {
  const [asked, ask] = useState<Asked | null>(null);
  const may = useMay({ tenant_id: tenantId });
  const offered = (Object.keys(VERBS) as Asked[]).filter((key) => may(VERBS[key].permission));
  return (
    <Card>
      <Group justify="space-between" align="flex-start" mb="xs">
        <div style={{ minWidth: 0 }}>
          <Text fw={650} component="h2" m={0}>
            {one.name}
          </Text>
          <Text size="sm" c="dimmed" component="div">
            Added <Time at={one.created_at} />
          </Text>
        </div>
        <Verbs offered={offered} verbs={VERBS} name={one.name} ask={ask} />
      </Group>
      <Facts
        rows={[
          ["Issuer", <span key="issuer">{one.issuer}</span>],
          ["Client ID", `${one.client_id} (${one.confidential ? "with a secret" : "public"})`],
          ["E-mail domains", one.email_domains.join(", ") || "Any verified address"],
          ["Default role", one.default_role ? roleName(one.default_role) : "None; only invited people can sign in"],
          ["Redirect URL", <CopyLine key="back" value={one.callback_url} what="the redirect URL" />],
        ]}
      />
      {asked === "update" && <ProviderDialog tenantId={tenantId} provider={one} close={() => ask(null)} />}
      {asked === "remove" && (
        <Confirm
          title={`Delete ${one.name}`}
          impact="People can no longer sign in through it. Open sessions, accounts and roles are kept."
          verb="Delete"
          danger
          name={one.name}
          close={() => ask(null)}
          act={() =>
            api.POST("/v1/tenants/{tenant_id}/identity-providers/{provider_id}/delete", {
              params: { path: { tenant_id: tenantId, provider_id: one.id } },
            })
          }
        />
      )}
    </Card>
  );
}
