// The health of an instance: one sentence, then the conditions its app reports.

import { Card, Group, Stack, Text } from "@mantine/core";
import { IconCircleCheck, IconCircleX, IconHeartbeat, IconHelpCircle } from "@tabler/icons-react";
import type { Schemas } from "../api/client";
import { conditionTitle, type Manifest } from "../catalog/manifest";
import { displayName } from "../parts/names";
import { Time } from "../parts/Time";
import { toneOf } from "../parts/tone";

export function HealthBanner({ instance }: { instance: Schemas["InstanceView"] }) {
  const gone = instance.state === "deleted";
  const tone = gone ? "still" : toneOf(instance.health.status);
  return (
    <Group
      gap="sm"
      wrap="nowrap"
      p="md"
      style={{ background: `var(--${tone}-wash)`, borderRadius: 14, border: "1px solid var(--line)" }}
      data-health={instance.health.status}
    >
      <IconHeartbeat size={22} color={`var(--${tone})`} style={{ flex: "none" }} aria-hidden />
      <div>
        <Text fw={600}>
          {gone ? "Deleted, with all its data." : instance.health.sentence || displayName(instance.health.status)}
        </Text>
        <Text size="xs" c="dimmed">
          {gone ? "Deleted" : displayName(instance.health.status)} · as of <Time at={instance.updated_at} />
        </Text>
      </div>
    </Group>
  );
}

type Condition = Schemas["ConditionView"];
const WORST = ["False", "Unknown", "True"];
const isBad = (one: Condition) => one.type === "Stuck"; // the only condition that is bad when true
const rank = (one: Condition) => (isBad(one) ? 0 : WORST.indexOf(one.status));
const worstFirst = (a: Condition, b: Condition) => rank(a) - rank(b);

const MARKS = {
  True: [IconCircleCheck, "good", "met"],
  False: [IconCircleX, "bad", "not met"],
  Unknown: [IconHelpCircle, "warn", "unknown"],
} as const;

export function Conditions({
  conditions,
  manifest,
}: {
  conditions: Schemas["ConditionView"][];
  manifest: Manifest | undefined;
}) {
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="md">
        Conditions
      </Text>
      <Stack gap="md">
        {[...conditions].sort(worstFirst).map((one) => {
          const [Icon, tone, word] =
            MARKS[
              isBad(one)
                ? "False"
                : (one.status as keyof typeof MARKS) in MARKS
                  ? (one.status as keyof typeof MARKS)
                  : "Unknown"
            ];
          return (
            <Group key={one.type} gap="sm" wrap="nowrap" align="flex-start">
              <Icon size={20} color={`var(--${tone})`} aria-label={word} style={{ flex: "none", marginTop: 1 }} />
              <div style={{ minWidth: 0, flex: 1 }}>
                <Text size="sm" fw={600}>
                  {conditionTitle(manifest, one.type)}
                </Text>
                {one.message !== `${conditionTitle(manifest, one.type)}.` && (
                  <Text size="sm" c="dimmed">
                    {one.message}
                  </Text>
                )}
              </div>
              <Text size="xs" c="dimmed" component="span" visibleFrom="sm">
                <Time at={one.last_transition_at} />
              </Text>
            </Group>
          );
        })}
      </Stack>
    </Card>
  );
}
