// Making or changing one policy.

import { TagsInput, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Asking } from "../parts/Asking";
import { draftOf, rulesOf } from "./fields";
import { useKnown } from "./known";
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
  const known = useKnown();
  const rules = rulesOf(draft);
  const empty = !Object.keys(rules).length && !enables.length;
  return (
    <Asking
      title={policy ? `Change ${policy.name}` : "New policy"}
      size="lg"
      verb={policy ? "Change it" : "Put it in force"}
      ready={Boolean(name.trim()) && !empty}
      act={() => LEVELS[level].set(id, name.trim(), { rules, reason: reason.trim(), enables }, seen(policy))}
      close={close}
    >
      <Text size="sm">
        It reaches {LEVELS[level].reaches}. A policy only takes away: what it refuses cannot be deployed from then on,
        and no other policy lifts that. What runs stays as it is.
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
          data={known("apps")}
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
    </Asking>
  );
}
