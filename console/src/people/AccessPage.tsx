// Who has access to this project and through which role, and the access check.

import { Anchor, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { queries, type Schemas } from "../api/client";
import { usePlace, useProjectId } from "../app/place";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { displayName, roleName } from "../parts/names";
import { Page, Shown } from "../parts/Page";
import { Begin } from "../session/Refused";
import { useMay, useWide } from "../session/session";
import { AssignRole } from "./AssignRole";
import { Explain } from "./Explain";
import { RevokeRole } from "./RevokeRole";
import { usePeople } from "./who";

type Member = Schemas["ProjectMemberView"];

export function AccessPage() {
  const project_id = useProjectId();
  const tenantId = usePlace().tenant?.id ?? "";
  const [assigning, assign] = useState(false);
  const may = useMay({ project_id });
  const people = usePeople(tenantId);
  const found = queries.useQuery("get", "/v1/projects/{project_id}/members", { params: { path: { project_id } } });
  return (
    <Page
      title="Access"
      about="People and service accounts with a role in this project or in its tenant."
      actions={
        <Begin permission="iam.binding.create" place={{ project_id }} act={() => assign(true)}>
          Assign role
        </Begin>
      }
    >
      <Shown of={found}>
        {({ items }) => (
          <Stack gap="lg">
            {may("iam.decision.explain") && (
              <Explain people={items.map((one) => ({ id: one.principal_id, name: one.name }))} where={{ project_id }} />
            )}
            <Listed label="Access" columns={["Name", "Role", ["Scope", "sm"], ["Kind", "md"], ACTIONS]}>
              {items.map((one) => (
                <Row key={one.binding_id} one={one} tenantId={tenantId} />
              ))}
            </Listed>
          </Stack>
        )}
      </Shown>
      {assigning && (
        <AssignRole tenantId={tenantId} people={people.data ?? []} projectId={project_id} close={() => assign(false)} />
      )}
    </Page>
  );
}

function Row({ one, tenantId }: { one: Member; tenantId: string }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Who one={one} tenantId={tenantId} />
        <Text size="xs" c="dimmed">
          {one.email ?? one.principal_id}
        </Text>
      </Table.Td>
      <Table.Td>
        <Label>{roleName(one.role)}</Label>
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Text size="sm" c="dimmed">
          {one.scope_kind === "project" ? "This project" : "Whole tenant"}
        </Text>
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed">
          {displayName(one.kind)}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        <RevokeRole tenantId={tenantId} binding={{ ...one, id: one.binding_id }} who={one.name} />
      </Table.Td>
    </Table.Tr>
  );
}

/** A link to the person where the user may read the tenant's people. */
function Who({ one, tenantId }: { one: Member; tenantId: string }) {
  const wide = useWide(tenantId);
  const name = `${one.name}${one.disabled ? " (disabled)" : ""}`;
  if (one.kind !== "user" || !wide) {
    return (
      <Text size="sm" fw={600}>
        {name}
      </Text>
    );
  }
  return (
    <Anchor
      component={Link}
      to={`/tenants/${tenantId}/users/${one.principal_id}`}
      fw={600}
      size="sm"
      c="var(--mantine-color-text)"
    >
      {name}
    </Anchor>
  );
}
