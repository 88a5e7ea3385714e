// Deletes a region or an SKU: the button in its row and the confirmation.

import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api/client";
import { Confirm } from "../parts/Confirm";
import { useMay } from "../session/session";

const OFFERS = {
  regions: [
    "capacity.region.delete",
    "No machine can be enrolled there any more. A region that has machines can't be deleted.",
  ],
  skus: [
    "capacity.sku.delete",
    "No machine can be enrolled with it any more. An SKU that has machines can't be deleted. Recorded usage is kept.",
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
