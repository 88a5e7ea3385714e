// A state as a coloured dot with its name.

import { Group, Text } from "@mantine/core";
import { displayName } from "./names";
import { type Tone, toneOf } from "./tone";

export function Dot({ tone }: { tone: Tone }) {
  return <span className="dot" data-moving={tone === "busy"} style={{ background: `var(--${tone})` }} aria-hidden />;
}

export function State({ state, noun, size = "sm" }: { state: string; noun?: "thing" | "operation"; size?: string }) {
  return (
    <Group gap={7} wrap="nowrap" component="span" style={{ display: "inline-flex" }}>
      <Dot tone={toneOf(state, noun)} />
      <Text span size={size} fw={500} style={{ whiteSpace: "nowrap" }}>
        {displayName(state)}
      </Text>
    </Group>
  );
}
