// Unexpected changes: what differs, and how to revert or keep each. Nothing is reverted automatically.

import { Card, Stack, Text } from "@mantine/core";
import { Facts } from "../parts/Facts";
import { type Drift as Change, type Detail, partsOf, rowsOf, textOf } from "./read";

export function Drift({ detail }: { detail: Detail }) {
  const found = rowsOf<Change>(partsOf(detail).drift);
  if (!found.length) return null;
  return (
    <Card data-drift>
      <Text component="h2" fw={650} m={0} mb={4}>
        Unexpected changes
      </Text>
      <Text size="sm" c="dimmed" mb="md">
        We don't undo these automatically. Here's how to fix each one.
      </Text>
      <Stack gap="lg">
        {found.map((row) => (
          <div key={`${textOf(row.what)} ${textOf(row.where)} ${textOf(row.said)}`}>
            <Text size="sm" fw={600} mb={6} style={{ overflowWrap: "anywhere" }}>
              {textOf(row.said)}{" "}
              <Text span c="dimmed" fw={400} inherit>
                {[textOf(row.what), textOf(row.where)].filter(Boolean).join(" on ")}
              </Text>
            </Text>
            <Facts
              rows={[
                ...(row.revert ? ([["To revert", textOf(row.revert)]] as [string, string][]) : []),
                ...(row.adopt ? ([["To keep it", textOf(row.adopt)]] as [string, string][]) : []),
              ]}
            />
          </div>
        ))}
      </Stack>
    </Card>
  );
}
