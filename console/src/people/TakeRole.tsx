// Taking a role away from somebody: the button in a row, and what it asks.

import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { useMay } from "../session/session";
import { AGENT, usePlaceOf } from "./who";

interface Props {
  tenantId: string;
  binding: { id: string; role: string; scope_kind: string; scope_id: string };
  who: string;
}

export function TakeRole({ tenantId, binding, who }: Props) {
  const [taking, take] = useState(false);
  const placeOf = usePlaceOf();
  const may = useMay({ tenant_id: tenantId });
  if (!may("iam.binding.remove") || binding.role === AGENT) return null;
  return (
    <>
      <Button
        variant="subtle"
        color="gray"
        size="xs"
        onClick={() => take(true)}
        aria-label={`Take away ${binding.role} from ${who}`}
      >
        Take away
      </Button>
      {taking && (
        <Confirm
          title={`Take ${binding.role} away`}
          impact={`${who} loses ${binding.role} in ${placeOf(binding)} with the next request. What is under way goes on.`}
          verb="Take away"
          danger
          name={binding.role}
          close={() => take(false)}
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
