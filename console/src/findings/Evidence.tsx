// Diagnostics of a failed operation: step, failed checks, unhealthy services, output and log.

import { Card, Group, Stack, Text } from "@mantine/core";
import { IconCircleX } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Copy } from "../parts/Copy";
import { Facts, Lines } from "../parts/Facts";
import { displayName } from "../parts/names";
import { type Detail, evidenceOf, textOf } from "./read";

const MOST_LINES = 10; // of each; the copy has all of them

export function Evidence({ detail }: { detail: Detail }) {
  const seen = evidenceOf(detail);
  const where: [string, ReactNode][] = [];
  if (seen.step) where.push(["Step", displayName(seen.step)]);
  if (seen.host) where.push(["Machine", seen.host]);
  if (!where.length && !seen.failed.length && !seen.services.length && !seen.output.length && !seen.log.length)
    return null;
  return (
    <Card data-evidence>
      <Group justify="space-between" mb="sm">
        <Text component="h2" fw={650} m={0}>
          {seen.earlier ? "Diagnostics of the previous failure" : "Diagnostics"}
        </Text>
        <Copy value={JSON.stringify(detail, null, 2)} what="the diagnostics as JSON" />
      </Group>
      <Stack gap="md">
        {where.length > 0 && <Facts rows={where} />}
        {(seen.failed.length > 0 || seen.services.length > 0) && (
          <Stack gap={8}>
            {seen.failed.map((row) => (
              <Wrong key={`${row.host} ${row.check} ${row.sentence}`} about={[row.host, displayName(row.check)]}>
                {row.sentence}
              </Wrong>
            ))}
            {seen.services.map((unit) => (
              <Wrong key={textOf(unit.unit)} about={[textOf(unit.unit)]}>
                {[unit.active, unit.sub, unit.result].map(textOf).filter(Boolean).join(", ")}
              </Wrong>
            ))}
            {seen.held > 0 && (
              <Text size="sm" c="dimmed">
                {seen.held} other checks passed.
              </Text>
            )}
          </Stack>
        )}
        <Words title="Output" lines={seen.output} />
        <Words title="Log" lines={seen.log} />
      </Stack>
    </Card>
  );
}

function Words({ title, lines }: { title: string; lines: string[] }) {
  if (!lines.length) return null;
  return (
    <div>
      <Text size="xs" c="dimmed" mb={4}>
        {title}
      </Text>
      <Lines text={lines.slice(-MOST_LINES).join("\n")} what="these lines" />
    </div>
  );
}

function Wrong({ about, children }: { about: string[]; children: ReactNode }) {
  return (
    <Group gap="sm" wrap="nowrap" align="flex-start">
      <IconCircleX size={18} color="var(--bad)" aria-label="failed" style={{ flex: "none", marginTop: 2 }} />
      <div style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        <Text size="sm">{children}</Text>
        <Text size="xs" c="dimmed">
          {about.filter(Boolean).join(" · ")}
        </Text>
      </div>
    </Group>
  );
}
