// A tenant's role assignments, roles and deny rules.

import { Tabs } from "@mantine/core";
import { useParams, useSearchParams } from "react-router";
import { Page } from "../parts/Page";
import { useMay } from "../session/session";
import { Bindings } from "./Bindings";
import { DenyRules } from "./DenyRules";
import { Explain } from "./Explain";
import { Roles } from "./Roles";
import { usePeople } from "./who";

export function RolesPage() {
  const { tenantId = "" } = useParams();
  const [search, setSearch] = useSearchParams();
  const may = useMay({ tenant_id: tenantId });
  const path = { tenant_id: tenantId };
  const people = usePeople(tenantId);
  const known = people.data ?? [];
  return (
    <Page
      title="Roles"
      about="Roles are sets of permissions, assigned in the whole tenant or in one project. Deny rules override roles."
    >
      {may("iam.decision.explain") && known.length > 0 && <Explain people={known} where={path} />}
      <Tabs
        value={search.get("tab") ?? "bindings"}
        onChange={(tab) => setSearch(tab && tab !== "bindings" ? { tab } : {}, { replace: true })}
        keepMounted={false}
      >
        <Tabs.List style={{ overflowX: "auto", flexWrap: "nowrap" }}>
          <Tabs.Tab value="bindings">Assignments</Tabs.Tab>
          <Tabs.Tab value="roles">Roles</Tabs.Tab>
          {may("iam.deny.read") && <Tabs.Tab value="denied">Deny rules</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="bindings" pt="lg">
          <Bindings tenantId={tenantId} people={known} />
        </Tabs.Panel>
        <Tabs.Panel value="roles" pt="lg">
          <Roles tenantId={tenantId} />
        </Tabs.Panel>
        <Tabs.Panel value="denied" pt="lg">
          <DenyRules tenantId={tenantId} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
