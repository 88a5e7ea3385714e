// Revokes a role: the button in a row and the confirmation.

import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { roleName } from "../parts/names";
import { useMay } from "../session/session";
import { AGENT, usePlaceOf } from "./who";

interface Props {
  tenantId: string;
  binding: { id: string; role: string; scope_kind: string; scope_id: string };
  who: string;
}

export function RevokeRole({ tenantId, binding, who }: Props) {
  const [revoking, revoke] = useState(false);
  const role = roleName(binding.role);
  const placeOf = usePlaceOf();
  const may = useMay({ tenant_id: tenantId });
  if (!may("iam.binding.remove") || binding.role === AGENT) return null;
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="xs"
        onClick={() => revoke(true)}
        aria-label={`Revoke ${role} from ${who}`}
      >
        Revoke
      </Button>
      {revoking && (
        <Confirm
          title={`Revoke ${role}`}
          impact={`${who} loses the ${role} role in ${placeOf(binding)}. Running operations continue.`}
          verb="Revoke role"
          danger
          name={role}
          close={() => revoke(false)}
          act={() =>
            api.POST("/v1/tenants/{tenant_id}/role-bindings/{binding_id}/remove", {
              params: { path: { tenant_id: tenantId, binding_id: binding.id } },
            })
          }
        />
      )}
    </>
  );
}
