// Named facts, as deep as they go: what apps report is shown as they said it.

import { Box, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { words } from "./tone";

export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <Box
      component="dl"
      m={0}
      style={{ display: "grid", gridTemplateColumns: "minmax(110px, auto) 1fr", gap: "8px 20px" }}
    >
      {rows.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </Box>
  );
}

function Fact({ name, value }: { name: string; value: ReactNode }) {
  return (
    <>
      <Text component="dt" size="sm" c="dimmed">
        {name}
      </Text>
      <Text component="dd" size="sm" m={0} style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        {value}
      </Text>
    </>
  );
}

export function Said({ value }: { value: unknown }): ReactNode {
  if (value === null || value === undefined || value === "")
    return (
      <Text span c="dimmed" inherit>
        none
      </Text>
    );
  if (Array.isArray(value)) {
    if (value.every((one) => typeof one !== "object")) return value.join(", ") || "none";
    return (
      <Stack gap="xs">
        {value.map((one, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: reported lists have no ids
          <Said key={place} value={one} />
        ))}
      </Stack>
    );
  }
  if (typeof value === "object") {
    return (
      <Facts rows={Object.entries(value).map(([name, inner]) => [words(name), <Said key={name} value={inner} />])} />
    );
  }
  return typeof value === "boolean" ? (value ? "yes" : "no") : String(value);
}
