// Who was invited, to what, and what became of it.

import { Button, Table, Text } from "@mantine/core";
import { IconMailOpened } from "@tabler/icons-react";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { usePages } from "../api/usePages";
import { Confirm } from "../parts/Confirm";
import { Label } from "../parts/Label";
import { ACTIONS, Listed } from "../parts/Listed";
import { Empty, Shown } from "../parts/Page";
import { State } from "../parts/State";
import { Until } from "../parts/Time";
import { useMay } from "../session/session";
import { usePlaceOf } from "./who";

type Invitation = Schemas["InvitationView"];

export function Invitations({ tenantId }: { tenantId: string }) {
  const path = { tenant_id: tenantId };
  const found = usePages("/invitations", [tenantId], (cursor) =>
    api.GET("/v1/tenants/{tenant_id}/invitations", { params: { path, query: { limit: 50, cursor } } }),
  );
  return (
    <Shown of={found}>
      {(items) =>
        items.length ? (
          <Listed
            label="Invitations"
            columns={["Who", "State", ["Gives", "sm"], ["Ends", "md"], ACTIONS]}
            turning={found.turning}
          >
            {items.map((one) => (
              <Row key={one.id} one={one} tenantId={tenantId} />
            ))}
          </Listed>
        ) : (
          <Empty icon={<IconMailOpened size={32} />} title="Nobody was invited yet">
            An invitation lets a person make their own account here, with a password only they know.
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
            <Label>{one.role}</Label>{" "}
            <Text span size="sm" c="dimmed">
              in {placeOf(at)}
            </Text>
          </>
        ) : (
          <Text size="sm" c="dimmed">
            an account without a role
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
            aria-label={`Revoke the invitation of ${one.name}`}
          >
            Revoke
          </Button>
        )}
        {revoking && (
          <Confirm
            title={`Revoke the invitation of ${one.name}`}
            impact="The link gives nothing any more. Who was invited can be invited again."
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
