// The dialog of an action: what it does, the fields it needs, and for what cannot be undone, the name to type.

import { Button, Checkbox, Group, Loader, NumberInput, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useNavigate } from "react-router";
import { queries } from "../api/client";
import { useManifest } from "../catalog/useManifest";
import { MachinePicker } from "../deploy/MachinePicker";
import { PlanView } from "../deploy/PlanView";
import { ProblemNote } from "../parts/ProblemNote";
import { Window } from "../parts/Window";
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
  const [target] = useState(now); // the action applies to the state that was on the screen
  const [fields, change] = useState<Fields>({ machines: [], inputs: target.instance.inputs });
  const [typed, type] = useState("");
  const go = useNavigate();
  const client = useQueryClient();
  const needs = offer.needs ?? [];
  const asked = useMutation({
    mutationFn: () => {
      const ask = offer.key.startsWith("add_") ? addMembers(offer.key.slice(4)) : TABLES[kind][offer.key];
      if (!ask) throw new Error(`This console does not know the action ${offer.key}. Reload the page.`);
      return ask(target, fields);
    },
    onSuccess: ({ operations: [first, ...others] }) => {
      client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "plan" }); // the plan was carried out
      close();
      if (!first) return notifications.show({ message: `${offer.title}: done.` });
      if (!others.length) return go(`/projects/${target.projectId}/operations/${first}`);
      notifications.show({ message: `${offer.title}: ${others.length + 1} operations started.` });
    },
  });
  const ready =
    (!offer.danger || typed === name) &&
    (!needs.includes("machines") || fields.machines.length > 0) &&
    (!needs.includes("machine") || fields.machines.length === 1) &&
    (!needs.includes("version") || Boolean(fields.version)) &&
    (!needs.includes("reason") || (fields.reason ?? "").trim().length >= 3);
  return (
    <Window title={`${offer.title.replace("…", "")}: ${name}`} close={close} size="lg">
      <Stack gap="md">
        <Text size="sm">{offer.impact}</Text>
        {(needs.includes("machines") || needs.includes("machine")) && (
          <MachinePicker
            projectId={target.projectId}
            backend={target.instance.runtime_backend}
            chosen={fields.machines}
            choose={(machines) => change({ ...fields, machines })}
            most={needs.includes("machine") ? 1 : null}
            label={needs.includes("machine") ? "Replacement machine" : "Machines"}
          />
        )}
        {needs.includes("successor") && (
          <MachinePicker
            projectId={target.projectId}
            backend={target.instance.runtime_backend}
            chosen={fields.machines}
            choose={(machines) => change({ ...fields, machines })}
            most={1}
            label="Replacement machine"
            hint="Optional. Without one the instance continues with one member fewer."
          />
        )}
        {needs.includes("deadline") && <Deadline fields={fields} change={change} />}
        {needs.includes("anyway") && (
          <Checkbox
            label="Retry even after repeated failures"
            checked={fields.anyway ?? false}
            onChange={(event) => change({ ...fields, anyway: event.currentTarget.checked })}
          />
        )}
        {needs.includes("version") && <Version target={target} fields={fields} change={change} />}
        {needs.includes("inputs") && <Inputs target={target} fields={fields} change={change} />}
        {offer.plan && <Plan offer={offer} target={target} machines={fields.machines} />}
        {kind !== "operation" &&
          !needs.includes("inputs") &&
          !needs.includes("version") &&
          !needs.includes("reason") && (
            <TextInput
              label="Reason"
              description="Optional. Recorded with the operation."
              value={fields.reason ?? ""}
              onChange={(event) => change({ ...fields, reason: event.currentTarget.value })}
            />
          )}
        {needs.includes("reason") && (
          <Textarea
            label="Reason"
            description="Recorded in the audit trail."
            required
            value={fields.reason ?? ""}
            onChange={(event) => change({ ...fields, reason: event.currentTarget.value })}
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
            Cancel
          </Button>
          <Button
            color={offer.danger ? "red.8" : undefined}
            disabled={!ready}
            loading={asked.isPending}
            onClick={() => asked.mutate()}
          >
            {offer.verb ?? offer.title}
          </Button>
        </Group>
      </Stack>
    </Window>
  );
}

interface Part {
  fields: Fields;
  change: (fields: Fields) => void;
}

function Deadline({ fields, change }: Part) {
  return (
    <>
      <NumberInput
        label="Let running jobs finish for up to (minutes)"
        description="Leave empty for no limit."
        min={0}
        max={10_080}
        value={fields.deadlineS === undefined ? "" : fields.deadlineS / 60}
        onChange={(minutes) => change({ ...fields, deadlineS: minutes === "" ? undefined : Number(minutes) * 60 })}
      />
      {fields.deadlineS !== undefined && (
        <Checkbox
          label="Then requeue jobs that still run"
          description="Otherwise the member stays and this operation fails."
          checked={fields.requeue ?? false}
          onChange={(event) => change({ ...fields, requeue: event.currentTarget.checked })}
        />
      )}
    </>
  );
}

function Version({ target, fields, change }: Part & { target: Target }) {
  const { app_slug, version } = target.instance;
  const versions = queries.useQuery("get", "/v1/apps/{app_slug}/versions", {
    params: { path: { app_slug }, query: { limit: 200 } },
  });
  const others = versions.data?.items.filter((one) => one.published && one.version !== version) ?? [];
  return (
    <Select
      label="Version"
      description={`Current version: ${version}`}
      placeholder={others.length ? "Choose" : "No other version is published"}
      data={others.map((one) => one.version)}
      value={fields.version ?? null}
      onChange={(chosen) => change({ ...fields, version: chosen ?? undefined })}
    />
  );
}

function Inputs({ target, fields, change }: Part & { target: Target }) {
  const manifest = useManifest(target.instance.app_slug, target.instance.version);
  if (!manifest) return <Loader />;
  return (
    <Suspense fallback={<Loader />}>
      <InputsForm
        schema={manifest.inputs_schema}
        value={fields.inputs ?? {}}
        change={(inputs) => change({ ...fields, inputs })}
      />
    </Suspense>
  );
}

function Plan({ offer, target, machines }: { offer: Offer; target: Target; machines: string[] }) {
  const adding = offer.key.startsWith("add_");
  const plan = useQuery({
    queryKey: ["plan", offer.key, target.instance.id, target.memberId, machines],
    queryFn: () => planOf(offer.key, target, machines),
    enabled: adding ? machines.length > 0 : machines.length === 0, // there is no plan with a replacement
    staleTime: 0,
    retry: false,
  });
  if (plan.error) return <ProblemNote error={plan.error} />;
  return plan.data ? <PlanView plan={plan.data} /> : null;
}
