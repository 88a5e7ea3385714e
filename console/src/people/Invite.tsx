// Invites a person. The link is shown once and works once.

import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { api, type Schemas } from "../api/client";
import { Asking } from "../parts/Asking";
import { CopyLine } from "../parts/Copy";
import { roleName } from "../parts/names";
import { Until } from "../parts/Time";
import { Window } from "../parts/Window";
import { useMay } from "../session/session";
import { type RoleDraft, RoleFields } from "./RoleFields";
import { usePlaceOf } from "./who";

type Invited = Schemas["InvitedView"];
const ADDRESS = /^[^@\s]+@[^@\s]+$/;

export function Invite({ tenantId, close }: { tenantId: string; close: () => void }) {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [draft, change] = useState<RoleDraft>({ where: "", role: null });
  const [made, done] = useState<Invited>();
  const may = useMay({ tenant_id: tenantId });
  if (made) return <Once made={made} close={close} />;
  return (
    <Asking
      title="Invite person"
      verb="Create invitation"
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
        You get a link to send to the person; no e-mail is sent. The link works once and expires after 7 days.
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
          change={change}
          hint="Optional. Without a role the account has no access yet."
        />
      )}
    </Asking>
  );
}

/** The token is in the fragment, which browsers do not send to the server. */
function linkOf(made: Invited): string {
  return `${window.location.origin}/invitation#${made.token}`;
}

function Once({ made, close }: { made: Invited; close: () => void }) {
  const placeOf = usePlaceOf();
  const at = made.project_id
    ? { scope_kind: "project", scope_id: made.project_id }
    : { scope_kind: "tenant", scope_id: "" };
  const gives = made.role ? `the ${roleName(made.role)} role in ${placeOf({ ...at, role: made.role })}` : "no role yet";
  return (
    <Window title={`Invitation for ${made.name}`} close={close} closeOnClickOutside={false} size="lg">
      <Stack>
        <Text size="sm">
          Send this link to {made.email}. It is shown only once. If it is lost, revoke the invitation and create
          another.
        </Text>
        <CopyLine value={linkOf(made)} what="the link" />
        <Text size="sm" component="div">
          Anyone with this link can create the account {made.email} with {gives}. It expires{" "}
          <Until at={made.expires_at} />.
        </Text>
        <Group justify="flex-end">
          <Button onClick={close} data-autofocus>
            Done
          </Button>
        </Group>
      </Stack>
    </Window>
  );
}
