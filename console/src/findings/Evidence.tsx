// What a failed operation saw: where it stood, which answers were no, which services were not well, and the last words.

import { Card, Group, Stack, Text } from "@mantine/core";
import { IconCircleX } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { Copy } from "../parts/Copy";
import { Facts, Lines } from "../parts/Facts";
import { words } from "../parts/tone";
import { type Detail, evidenceOf, textOf } from "./read";

const MOST_LINES = 10; // of each; all of them go with the copy

export function Evidence({ detail }: { detail: Detail }) {
  const seen = evidenceOf(detail);
  const where: [string, ReactNode][] = [];
  if (seen.step) where.push(["Step", words(seen.step)]);
  if (seen.host) where.push(["Machine", seen.host]);
  if (!where.length && !seen.noes.length && !seen.services.length && !seen.said.length && !seen.log.length) return null;
  return (
    <Card data-evidence>
      <Group justify="space-between" mb="sm">
        <Text component="h2" fw={650} m={0}>
          {seen.earlier ? "What was seen the last time" : "What was seen"}
        </Text>
        <Copy value={JSON.stringify(detail, null, 2)} what="all of the evidence as JSON" />
      </Group>
      <Stack gap="md">
        {where.length > 0 && <Facts rows={where} />}
        {(seen.noes.length > 0 || seen.services.length > 0) && (
          <Stack gap={8}>
            {seen.noes.map((row) => (
              <Wrong key={`${row.host} ${row.check} ${row.sentence}`} about={[row.host, words(row.check)]}>
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
                {seen.held} other checks hold.
              </Text>
            )}
          </Stack>
        )}
        <Words title="It said" lines={seen.said} />
        <Words title="From the log" lines={seen.log} />
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
      <IconCircleX size={18} color="var(--bad)" aria-label="no" style={{ flex: "none", marginTop: 2 }} />
      <div style={{ minWidth: 0, overflowWrap: "anywhere" }}>
        <Text size="sm">{children}</Text>
        <Text size="xs" c="dimmed">
          {about.filter(Boolean).join(" · ")}
        </Text>
      </div>
    </Group>
  );
}
