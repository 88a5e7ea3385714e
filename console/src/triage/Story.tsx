// The timeline of a trace: time, source and sentence.

import { Box, Group, Stack, Text } from "@mantine/core";
import type { Schemas } from "../api/client";
import { Dot } from "../parts/State";
import { exactly } from "../parts/time";
import type { Tone } from "../parts/tone";

const TONES: Record<string, Tone> = { error: "bad", warning: "warn", info: "busy", debug: "still" };

export function Story({ entries }: { entries: Schemas["EntryView"][] }) {
  const start = entries[0] ? Date.parse(entries[0].at) : 0;
  return (
    <Stack gap={10} component="ol" m={0} p={0} style={{ listStyle: "none" }}>
      {entries.map((entry, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no ids, and are only ever added
        <Group key={place} component="li" gap="sm" wrap="nowrap" align="flex-start">
          <Text
            size="xs"
            c="dimmed"
            w={74}
            ta="right"
            className="mono"
            component="time"
            title={exactly(entry.at)}
            style={{ flex: "none", paddingTop: 2, whiteSpace: "nowrap" }}
          >
            +{((Date.parse(entry.at) - start) / 1000).toFixed(2)} s
          </Text>
          <Box pt={2}>
            <Dot tone={TONES[entry.level] ?? "still"} />
          </Box>
          <Box style={{ minWidth: 0 }}>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              {entry.sentence}
            </Text>
            <Text size="xs" c="dimmed">
              {entry.source} · {entry.kind}
              {entry.level === "error" || entry.level === "warning" ? ` · ${entry.level}` : ""}
            </Text>
          </Box>
        </Group>
      ))}
    </Stack>
  );
}
