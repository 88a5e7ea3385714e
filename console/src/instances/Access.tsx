// How to use an instance: whatever its app reports, commands first, all of it ready to be copied.

import { Box, Card, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Copy, CopyLine } from "../parts/Copy";
import { Facts, Said } from "../parts/Facts";
import { words } from "../parts/tone";

interface Command {
  command: string;
  tried?: string;
}

export function Access({ bundle }: { bundle: Record<string, unknown> | null }) {
  if (!bundle) return null;
  const { commands, ...rest } = bundle;
  const lines = Array.isArray(commands) ? (commands as Command[]) : [];
  return (
    <Stack gap="lg">
      {lines.length > 0 && (
        <Card>
          <Text component="h2" fw={650} m={0} mb={4}>
            Commands
          </Text>
          <Text size="sm" c="dimmed" mb="md">
            Each of them was run before it was shown.
          </Text>
          <Stack gap="sm">
            {lines.map((line) => (
              <Box key={line.command}>
                <CopyLine value={line.command} what="the command" />
                {line.tried && (
                  <Text size="xs" c="dimmed" mt={2}>
                    Tried: {line.tried}
                  </Text>
                )}
              </Box>
            ))}
          </Stack>
        </Card>
      )}
      <Card>
        <Group justify="space-between" mb="sm">
          <Text component="h2" fw={650} m={0}>
            Places and names
          </Text>
          <Copy value={JSON.stringify(bundle, null, 2)} what="all of it as JSON" />
        </Group>
        <Facts
          rows={Object.entries(rest).map(([name, value]): [string, ReactNode] => [
            words(name),
            <Value key={name} value={value} name={words(name)} />,
          ])}
        />
      </Card>
    </Stack>
  );
}

function Value({ value, name }: { value: unknown; name: string }) {
  if (typeof value !== "string") return <Said value={value} />;
  return (
    <Group gap={4} wrap="nowrap">
      <span className="mono">{value}</span>
      <Copy value={value} what={name.toLowerCase()} />
    </Group>
  );
}
