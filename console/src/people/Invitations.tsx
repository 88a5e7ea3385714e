// The invitations of a tenant and their state.

import { Button, Table, Text } from "@mantine/core";
import { IconMailOpened } from "@tabler/icons-react";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Confirm } from "../parts/Confirm";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { roleName } from "../parts/names";
import { Empty, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Until } from "../parts/Time";
import { useMay } from "../session/session";
import { usePlaceOf } from "./who";

type Invitation = Schemas["InvitationView"];

export function Invitations({ tenantId }: { tenantId: string }) {
  const path = { tenant_id: tenantId };
  const found = usePages("/v1/tenants/{tenant_id}/invitations", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/invitations", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Shown of={found}>
      {(items) =>
        items.length ? (
          <Listed
            label="Invitations"
            columns={["Name", "State", ["Role", "sm"], ["Expires", "md"], ACTIONS]}
            turning={found.turning}
          >
            {items.map((one) => (
              <Row key={one.id} one={one} tenantId={tenantId} />
            ))}
          </Listed>
        ) : (
          <Empty icon={<IconMailOpened size={32} />} title="No invitations yet">
            An invitation lets a person create an account with their own password.
          </Empty>
        )
      }
    </Shown>
  );
}

function Row({ one, tenantId }: { one: Invitation; tenantId: string }) {
  const [revoking, revoke] = useState(false);
  const may = useMay({ tenant_id: tenantId });
  const placeOf = usePlaceOf();
  const at = {
    scope_kind: one.project_id ? "project" : "tenant",
    scope_id: one.project_id ?? "",
    role: one.role ?? "",
  };
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm" fw={600}>
          {one.name}
        </Text>
        <Text size="xs" c="dimmed">
          {one.email}
        </Text>
      </Table.Td>
      <Table.Td>
        <State state={one.state} />
      </Table.Td>
      <Table.Td visibleFrom="sm">
        {one.role ? (
          <>
            <Label>{roleName(one.role)}</Label>{" "}
            <Text span size="sm" c="dimmed">
              in {placeOf(at)}
            </Text>
          </>
        ) : (
          <Text size="sm" c="dimmed">
            No role
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="md">
        <Text size="sm" c="dimmed" component="span">
          <Until at={one.expires_at} />
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        {one.state === "open" && may("tenancy.user.create") && (
          <Button
            variant="subtle"
            color="gray"
            size="xs"
            onClick={() => revoke(true)}
            aria-label={`Revoke invitation for ${one.name}`}
          >
            Revoke
          </Button>
        )}
        {revoking && (
          <Confirm
            title={`Revoke invitation for ${one.name}`}
            impact="The link stops working. You can invite the person again."
            verb="Revoke"
            danger
            close={() => revoke(false)}
            act={() =>
              api.POST("/v1/tenants/{tenant_id}/invitations/{invitation_id}/revoke", {
                params: { path: { tenant_id: tenantId, invitation_id: one.id } },
              })
            }
          />
        )}
      </Table.Td>
    </Table.Tr>
  );
}
