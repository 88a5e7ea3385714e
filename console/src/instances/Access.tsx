// How to connect to an instance: what its app reports, commands first, ready to copy.

import { Box, Card, Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Copy, CopyLine } from "../parts/Copy";
import { Facts, Value } from "../parts/Facts";
import { displayName } from "../parts/names";

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
            Tested on this instance before they were listed.
          </Text>
          <Stack gap="sm">
            {lines.map((line) => (
              <Box key={line.command}>
                <CopyLine value={line.command} what="the command" />
                {line.tried && (
                  <Text size="xs" c="dimmed" mt={2}>
                    Last test: {line.tried}
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
            Connection details
          </Text>
          <Copy value={JSON.stringify(bundle, null, 2)} what="the details as JSON" />
        </Group>
        <Facts
          rows={Object.entries(rest).map(([name, value]): [string, ReactNode] => [
            displayName(name),
            <Detail key={name} value={value} name={displayName(name)} />,
          ])}
        />
      </Card>
    </Stack>
  );
}

function Detail({ value, name }: { value: unknown; name: string }) {
  if (typeof value !== "string") return <Value value={value} />;
  return (
    <Group gap={4} wrap="nowrap">
      <span className="mono">{value}</span>
      <Copy value={value} what={name.toLowerCase()} />
    </Group>
  );
}
