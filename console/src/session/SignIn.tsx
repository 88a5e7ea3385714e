// Sign-in with a password, or through the organisation's identity provider.

import { Button, Card, Divider, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Navigate, useSearchParams } from "react-router";
import { api, type Schemas } from "../api/client";
import { takeRefusal } from "../api/csrf";
import { asProblem } from "../api/problem";
import { ProblemNote } from "../parts/ProblemNote";
import { Outside } from "./Outside";
import { signIn, useMe } from "./session";

const REMEMBERED = "gpuaas.organisation";

export function SignIn() {
  const me = useMe();
  const [search] = useSearchParams();
  const back = search.get("to");
  const [refusal] = useState(takeRefusal);
  if (me.data) return <Navigate to={back?.startsWith("/") && !back.startsWith("//") ? back : "/"} replace />;
  return (
    <Outside title="Sign in to GPUaaS" tab="Sign in">
      {refusal && <ProblemNote error={refusal} />}
      <Card>
        <Stack gap="lg">
          <WithPassword organisation={search.get("tenant")} />
          <Divider label="or" />
          <ThroughProvider asked={search.get("tenant")} />
        </Stack>
      </Card>
    </Outside>
  );
}

function WithPassword({ organisation }: { organisation: string | null }) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [tenant, setTenant] = useState(organisation ?? "");
  const enter = useMutation({ mutationFn: () => signIn(email, password, tenant) });
  const severalTenants = enter.error !== null && asProblem(enter.error).code === "tenant_needed";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    enter.mutate();
  };
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="E-mail"
          type="email"
          autoComplete="username"
          required
          withAsterisk={false}
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          required
          withAsterisk={false}
          value={password}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
        {(severalTenants || tenant) && (
          <TextInput
            label="Organisation"
            description="Short name. This e-mail address has accounts in several organisations."
            value={tenant}
            onChange={(event) => setTenant(event.currentTarget.value)}
          />
        )}
        {enter.error && <ProblemNote error={enter.error} />}
        <Button type="submit" loading={enter.isPending} fullWidth mt={4}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

type Way = Schemas["SignInWayView"];

function ThroughProvider({ asked }: { asked: string | null }) {
  const [organisation, setOrganisation] = useState(asked ?? localStorage.getItem(REMEMBERED) ?? "");
  const look = useMutation({
    mutationFn: async (tenant: string): Promise<Way[]> => {
      const { data } = await api.GET("/v1/auth/providers", { params: { query: { tenant } } });
      if (data?.items.length) localStorage.setItem(REMEMBERED, tenant);
      return data?.items ?? [];
    },
  });
  const [open, unfold] = useState(Boolean(organisation));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    look.mutate(organisation.trim());
  };
  if (!open) {
    return (
      <Button variant="default" fullWidth onClick={() => unfold(true)}>
        Sign in with your organisation
      </Button>
    );
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        <TextInput
          label="Organisation"
          description="Short name, for example acme."
          data-autofocus
          required
          withAsterisk={false}
          value={organisation}
          onChange={(event) => setOrganisation(event.currentTarget.value)}
        />
        {look.data?.map((way) => (
          <Button key={way.start_url} component="a" href={way.start_url} variant="default" fullWidth>
            Continue with {way.name}
          </Button>
        ))}
        {look.data?.length === 0 && (
          <Text size="sm" c="dimmed" role="status">
            No identity provider found. Check the short name, or sign in with e-mail and password.
          </Text>
        )}
        {look.error && <ProblemNote error={look.error} />}
        {!look.data?.length && (
          <Button type="submit" variant="default" loading={look.isPending} fullWidth>
            Continue
          </Button>
        )}
      </Stack>
    </form>
  );
}
