// What is not as the platform made it, who did it as far as can be seen, and both ways on. Nothing is mended by itself.

import { Card, Stack, Text } from "@mantine/core";
import { Facts } from "../parts/Facts";
import { type Detail, rowsOf, textOf } from "./read";

export function Drift({ detail }: { detail: Detail }) {
  const found = rowsOf(detail?.drift);
  if (!found.length) return null;
  return (
    <Card data-drift>
      <Text component="h2" fw={650} m={0} mb={4}>
        Not as the platform made it
      </Text>
      <Text size="sm" c="dimmed" mb="md">
        It is told and left alone; whoever decides finds the way here.
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
                ...(row.revert ? ([["To put it back", textOf(row.revert)]] as [string, string][]) : []),
                ...(row.adopt ? ([["To keep it", textOf(row.adopt)]] as [string, string][]) : []),
              ]}
            />
          </div>
        ))}
      </Stack>
    </Card>
  );
}
