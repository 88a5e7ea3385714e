// Making or changing one policy.

import { Button, Group, Modal, Stack, TagsInput, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ProblemNote } from "../parts/ProblemNote";
import { draftOf, rulesOf } from "./fields";
import { LEVELS, type Level, type Policy, seen } from "./levels";
import { RulesForm } from "./RulesForm";

interface Props {
  level: Level;
  id: string; // of the tenant or project
  policy: Policy | null; // null: a new one
  close: () => void;
}

export function PolicyDialog({ level, id, policy, close }: Props) {
  const [name, setName] = useState(policy?.name ?? "");
  const [draft, change] = useState(draftOf(policy?.rules));
  const [enables, enable] = useState((policy?.enables?.platform_managed as string[] | undefined) ?? []);
  const [reason, setReason] = useState(policy?.reason ?? "");
  const client = useQueryClient();
  const rules = rulesOf(draft);
  const set = useMutation({
    mutationFn: () => LEVELS[level].set(id, name.trim(), { rules, reason: reason.trim(), enables }, seen(policy)),
    onSuccess: () => {
      client.invalidateQueries();
      close();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    set.mutate();
  };
  const empty = !Object.keys(rules).length && !enables.length;
  return (
    <Modal
      opened
      onClose={close}
      size="lg"
      title={<Text fw={650}>{policy ? `Change ${policy.name}` : "New policy"}</Text>}
    >
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm">
            It reaches {LEVELS[level].reaches}. A policy only takes away: what it refuses cannot be deployed from then
            on, and no other policy lifts that. What runs stays as it is.
          </Text>
          {!policy && (
            <TextInput
              label="Name"
              description="Small letters, digits and dashes."
              required
              withAsterisk={false}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              data-autofocus
            />
          )}
          <RulesForm draft={draft} change={change} />
          {level === "platform" && (
            <TagsInput
              label="Apps the platform offers to run itself"
              description="The one thing a policy opens: the operating mode platform_managed for these."
              value={enables}
              onChange={enable}
            />
          )}
          <TextInput
            label="Reason"
            description="Everybody it refuses is told."
            value={reason}
            onChange={(event) => setReason(event.currentTarget.value)}
          />
          {set.error && <ProblemNote error={set.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Leave it
            </Button>
            <Button type="submit" loading={set.isPending} disabled={!name.trim() || empty}>
              {policy ? "Change it" : "Put it in force"}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
