// Asking for an action: what it will do, what must be said, and for what cannot be taken back, the name.

import {
  Button,
  Checkbox,
  Group,
  Loader,
  Modal,
  NumberInput,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useNavigate } from "react-router";
import { queries } from "../api/client";
import { useManifest } from "../catalog/useManifest";
import { MachinePicker } from "../deploy/MachinePicker";
import { PlanView } from "../deploy/PlanView";
import { ProblemNote } from "../parts/ProblemNote";
import { ASK_INSTANCE, ASK_MEMBER, ASK_OPERATION, addMembers, type Fields, planOf, type Target } from "./ask";
import type { Offer } from "./offers";

const InputsForm = lazy(async () => ({ default: (await import("../deploy/InputsForm")).InputsForm }));
const TABLES = { instance: ASK_INSTANCE, member: ASK_MEMBER, operation: ASK_OPERATION };

interface Props {
  offer: Offer;
  target: Target;
  kind: keyof typeof TABLES;
  name: string;
  close: () => void;
}

export function Dialog({ offer, target: now, kind, name, close }: Props) {
  const [target] = useState(now); // what is asked for is asked of what was seen
  const [said, say] = useState<Fields>({ machines: [], inputs: target.instance.inputs });
  const [typed, type] = useState("");
  const go = useNavigate();
  const client = useQueryClient();
  const needs = offer.needs ?? [];
  const asked = useMutation({
    mutationFn: () => {
      const ask = offer.key.startsWith("add_") ? addMembers(offer.key.slice(4)) : TABLES[kind][offer.key];
      if (!ask) throw new Error(`The console does not know how to ask for ${offer.key}.`);
      return ask(target, said);
    },
    onSuccess: ({ operations: [first, ...others] }) => {
      client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "plan" }); // that one has come true
      close();
      if (!first) return notifications.show({ message: `${offer.title}: done.` });
      if (!others.length) return go(`/projects/${target.projectId}/operations/${first}`);
      notifications.show({ message: `${offer.title}: ${others.length + 1} operations are under way.` });
    },
  });
  const ready =
    (!offer.danger || typed === name) &&
    (!needs.includes("machines") || said.machines.length > 0) &&
    (!needs.includes("machine") || said.machines.length === 1) &&
    (!needs.includes("version") || Boolean(said.version)) &&
    (!needs.includes("reason") || (said.reason ?? "").trim().length >= 3);
  return (
    <Modal opened onClose={close} title={<Text fw={650}>{`${offer.title}: ${name}`}</Text>} size="lg">
      <Stack gap="md">
        <Text size="sm">{offer.impact}</Text>
        {(needs.includes("machines") || needs.includes("machine")) && (
          <MachinePicker
            projectId={target.projectId}
            backend={target.instance.runtime_backend}
            chosen={said.machines}
            choose={(machines) => say({ ...said, machines })}
            most={needs.includes("machine") ? 1 : null}
            label={needs.includes("machine") ? "The machine that takes its place" : "Machines to add"}
          />
        )}
        {needs.includes("successor") && (
          <MachinePicker
            projectId={target.projectId}
            backend={target.instance.runtime_backend}
            chosen={said.machines}
            choose={(machines) => say({ ...said, machines })}
            most={1}
            label="The machine that takes its place"
            hint="Optional: without one the instance goes on with a member fewer."
          />
        )}
        {needs.includes("deadline") && <Deadline said={said} say={say} />}
        {needs.includes("anyway") && (
          <Checkbox
            label="Even if the app has stopped trying after repeated failures"
            checked={said.anyway ?? false}
            onChange={(event) => say({ ...said, anyway: event.currentTarget.checked })}
          />
        )}
        {needs.includes("version") && <Version target={target} said={said} say={say} />}
        {needs.includes("inputs") && <Inputs target={target} said={said} say={say} />}
        {offer.plan && <Plan offer={offer} target={target} machines={said.machines} />}
        {kind !== "operation" &&
          !needs.includes("inputs") &&
          !needs.includes("version") &&
          !needs.includes("reason") && (
            <TextInput
              label="Reason"
              description="Optional; kept with the operation."
              value={said.reason ?? ""}
              onChange={(event) => say({ ...said, reason: event.currentTarget.value })}
            />
          )}
        {needs.includes("reason") && (
          <Textarea
            label="Why"
            description="Kept for whoever looks later."
            required
            value={said.reason ?? ""}
            onChange={(event) => say({ ...said, reason: event.currentTarget.value })}
          />
        )}
        {offer.danger && (
          <TextInput
            label={`Type ${name} to confirm`}
            value={typed}
            onChange={(event) => type(event.currentTarget.value)}
            autoComplete="off"
            data-autofocus
          />
        )}
        {asked.error && <ProblemNote error={asked.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={close}>
            Leave it
          </Button>
          <Button
            color={offer.danger ? "red.8" : undefined}
            disabled={!ready}
            loading={asked.isPending}
            onClick={() => asked.mutate()}
          >
            {offer.title}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

interface Part {
  said: Fields;
  say: (said: Fields) => void;
}

function Deadline({ said, say }: Part) {
  return (
    <>
      <NumberInput
        label="Minutes that running work may take"
        description="Left empty: as long as it needs."
        min={0}
        max={10_080}
        value={said.deadlineS === undefined ? "" : said.deadlineS / 60}
        onChange={(minutes) => say({ ...said, deadlineS: minutes === "" ? undefined : Number(minutes) * 60 })}
      />
      {said.deadlineS !== undefined && (
        <Checkbox
          label="Then begin it anew elsewhere"
          description="Otherwise it keeps the member, and this operation gives up."
          checked={said.requeue ?? false}
          onChange={(event) => say({ ...said, requeue: event.currentTarget.checked })}
        />
      )}
    </>
  );
}

function Version({ target, said, say }: Part & { target: Target }) {
  const { app_slug, version } = target.instance;
  const versions = queries.useQuery("get", "/v1/apps/{app_slug}/versions", {
    params: { path: { app_slug }, query: { limit: 200 } },
  });
  const others = versions.data?.items.filter((one) => one.published && one.version !== version) ?? [];
  return (
    <Select
      label="Version"
      description={`It has ${version} now.`}
      placeholder={others.length ? "Choose" : "No other version is published"}
      data={others.map((one) => one.version)}
      value={said.version ?? null}
      onChange={(chosen) => say({ ...said, version: chosen ?? undefined })}
    />
  );
}

function Inputs({ target, said, say }: Part & { target: Target }) {
  const manifest = useManifest(target.instance.app_slug, target.instance.version);
  if (!manifest) return <Loader />;
  return (
    <Suspense fallback={<Loader />}>
      <InputsForm
        schema={manifest.inputs_schema}
        value={said.inputs ?? {}}
        change={(inputs) => say({ ...said, inputs })}
      />
    </Suspense>
  );
}

function Plan({ offer, target, machines }: { offer: Offer; target: Target; machines: string[] }) {
  const adding = offer.key.startsWith("add_");
  const plan = useQuery({
    queryKey: ["plan", offer.key, target.instance.id, target.memberId, machines],
    queryFn: () => planOf(offer.key, target, machines),
    enabled: adding ? machines.length > 0 : machines.length === 0, // with a successor nothing is foretold
    staleTime: 0,
    retry: false,
  });
  if (plan.error) return <ProblemNote error={plan.error} />;
  return plan.data ? <PlanView plan={plan.data} /> : null;
}
