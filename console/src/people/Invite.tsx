// Inviting somebody: the link is made once, shown once, and good once.

import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { Asking } from "../parts/Asking";
import { CopyLine } from "../parts/Copy";
import { Until } from "../parts/Time";
import { useMay } from "../session/session";
import { type RoleDraft, RoleFields } from "./RoleFields";
import { usePlaceOf } from "./who";

type Invited = Schemas["InvitedView"];
const ADDRESS = /^[^@\s]+@[^@\s]+$/;

export function Invite({ tenantId, close }: { tenantId: string; close: () => void }) {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [draft, say] = useState<RoleDraft>({ where: "", role: null });
  const [made, done] = useState<Invited>();
  const may = useMay({ tenant_id: tenantId });
  if (made) return <Once made={made} close={close} />;
  return (
    <Asking
      title="Invite somebody"
      verb="Make the invitation"
      ready={ADDRESS.test(email.trim()) && Boolean(name.trim())}
      act={async () => {
        const { data } = await api.POST("/v1/tenants/{tenant_id}/invitations", {
          params: { path: { tenant_id: tenantId } },
          body: {
            email: email.trim(),
            name: name.trim(),
            role: draft.role ?? undefined,
            project_id: (draft.role && draft.where) || undefined,
          },
        });
        return data;
      }}
      done={done}
      close={close}
    >
      <Text size="sm">
        You get a link to send them; the platform sends no mail. With it they choose a password of their own and have an
        account here. It is good once, for seven days.
      </Text>
      <TextInput
        label="E-mail"
        type="email"
        value={email}
        onChange={(event) => setEmail(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput label="Name" value={name} onChange={(event) => setName(event.currentTarget.value)} />
      {may("iam.binding.create") && (
        <RoleFields
          tenantId={tenantId}
          draft={draft}
          say={say}
          hint="What they hold once they accept. Left empty: an account that may do nothing yet."
        />
      )}
    </Asking>
  );
}

/** The token stands behind the #, which browsers send to nobody. */
function linkOf(made: Invited): string {
  return `${window.location.origin}/invitation#${made.token}`;
}

function Once({ made, close }: { made: Invited; close: () => void }) {
  const placeOf = usePlaceOf();
  const at = made.project_id
    ? { scope_kind: "project", scope_id: made.project_id }
    : { scope_kind: "tenant", scope_id: "" };
  const gives = made.role ? `${made.role} in ${placeOf({ ...at, role: made.role })}` : "no role yet";
  return (
    <Modal
      opened
      onClose={close}
      closeOnClickOutside={false}
      size="lg"
      title={<Text fw={650}>{`${made.name} is invited`}</Text>}
    >
      <Stack>
        <Text size="sm">
          Send this link to {made.email} by a way you trust. It is shown only now; if it is lost, revoke the invitation
          and make another.
        </Text>
        <CopyLine value={linkOf(made)} what="the link" />
        <Text size="sm" component="div">
          Whoever opens it first makes the account {made.email}, with {gives}. It can do nothing else, and it ends{" "}
          <Until at={made.expires_at} />. If you lose the right to give this before then, it gives nothing.
        </Text>
        <Group justify="flex-end">
          <Button onClick={close} data-autofocus>
            I have sent it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
