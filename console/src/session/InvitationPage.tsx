// Accepts an invitation: the person chooses a password. The token is in the fragment of the address.

import { Button, Card, PasswordInput, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useLocation, useNavigate } from "react-router";
import { api } from "../api/client";
import { ProblemNote } from "../parts/ProblemNote";
import { Outside } from "./Outside";
import { signedOut, signIn, useMe } from "./session";

const LEAST = 12;

export function InvitationPage() {
  const token = useLocation().hash.slice(1);
  return (
    <Outside title="You are invited to GPUaaS" tab="Invitation">
      <Card>
        {token ? (
          <Accept token={token} />
        ) : (
          <Text size="sm">
            This link is incomplete. Copy the whole link from your invitation, or ask for a new one.
          </Text>
        )}
      </Card>
    </Outside>
  );
}

function Accept({ token }: { token: string }) {
  const [password, setPassword] = useState("");
  const go = useNavigate();
  const me = useMe().data;
  const accept = useMutation({
    mutationFn: async () => {
      const { data } = await api.POST("/v1/invitations/accept", { body: { token, password } });
      signedOut(); // of the previous user
      return signIn(data?.email ?? "", password, undefined).then(
        () => "/",
        () => "/sign-in", // the account exists; this e-mail address may have several
      );
    },
    onSuccess: (to) => go(to, { replace: true }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    accept.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <Text size="sm">Choose a password to create your account.</Text>
        {me && (
          <Text size="sm" c="var(--warn)">
            You are signed in as {me.principal.name}. Accepting signs you out and creates another account.
          </Text>
        )}
        <PasswordInput
          label="Password"
          description={`At least ${LEAST} characters.`}
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        {accept.error && <ProblemNote error={accept.error} />}
        <Button type="submit" disabled={password.length < LEAST} loading={accept.isPending} fullWidth mt={4}>
          Accept invitation
        </Button>
      </Stack>
    </form>
  );
}
