// Creates or edits a policy.

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
      title={policy ? `Edit ${policy.name}` : "Create policy"}
      size="lg"
      verb={policy ? "Save" : "Apply policy"}
      ready={Boolean(name.trim()) && !empty}
      act={() => LEVELS[level].set(id, name.trim(), { rules, reason: reason.trim(), enables }, seen(policy))}
      close={close}
    >
      <Text size="sm">
        Applies to {LEVELS[level].reaches}. What a policy denies can't be deployed, and no other policy can allow it.
        Running instances are not affected.
      </Text>
      {!policy && (
        <TextInput
          label="Name"
          description="Lowercase letters, digits and hyphens."
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
          label="Platform-managed apps"
          description="Apps that the platform offers to operate itself."
          data={known("apps")}
          value={enables}
          onChange={enable}
        />
      )}
      <TextInput
        label="Reason"
        description="Shown to everyone it restricts."
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </Asking>
  );
}
