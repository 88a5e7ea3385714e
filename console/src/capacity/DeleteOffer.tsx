// Taking away a region or a kind of machine: the button in its row, and what it asks.

import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { useMay } from "../session/session";

const OFFERS = {
  regions: [
    "capacity.region.delete",
    "Nobody can enrol a machine there any more. One where a machine stands is not deleted.",
  ],
  skus: [
    "capacity.sku.delete",
    "No machine can be enrolled as one any more. One of which there is a machine is not deleted; what was counted of it stays counted.",
  ],
} as const;

export function DeleteOffer({ of, name }: { of: keyof typeof OFFERS; name: string }) {
  const [asked, ask] = useState(false);
  const may = useMay({});
  const [permission, impact] = OFFERS[of];
  if (!may(permission)) return null;
  return (
    <>
      <Button variant="subtle" color="gray" size="xs" onClick={() => ask(true)} aria-label={`Delete ${name}`}>
        Delete
      </Button>
      {asked && (
        <Confirm
          title={`Delete ${name}`}
          impact={impact}
          verb="Delete"
          danger
          name={name}
          close={() => ask(false)}
          act={() => api.POST(`/v1/${of}/delete`, { body: { name } })}
        />
      )}
    </>
  );
}
