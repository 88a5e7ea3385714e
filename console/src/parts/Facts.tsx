// Name and value pairs, nested as deep as an app reports them.

import { Box, Code, Group, Stack, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Copy } from "./Copy";
import { displayName } from "./names";
import { Scroll } from "./Scroll";
import { Until } from "./Time";

const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const PLAIN = /^[a-z_]+$/; // a field name; anything else is the name of something and stays as it is

export function Facts({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <Box component="dl" m={0} className="facts">
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

export function Value({ value }: { value: unknown }): ReactNode {
  if (value === null || value === undefined || value === "") return <None />;
  if (Array.isArray(value)) return <Several values={value} />;
  if (typeof value === "object") return <Facts rows={factsOf(value)} />;
  if (typeof value === "boolean") return value ? "yes" : "no";
  const text = String(value);
  if (MOMENT.test(text)) return <Until at={text} />;
  return text.includes("\n") ? <Lines text={text} /> : text;
}

export function factsOf(value: object): [string, ReactNode][] {
  return Object.entries(value).map(([name, inner]) => [named(name), <Value key={name} value={inner} />]);
}

function named(name: string): string {
  return PLAIN.test(name) ? displayName(name) : name;
}

function None() {
  return (
    <Text span c="dimmed" inherit>
      none
    </Text>
  );
}

function Several({ values }: { values: unknown[] }): ReactNode {
  if (!values.length) return <None />;
  if (values.every((one) => typeof one !== "object")) return values.join(", ");
  if (values.every(isFlat)) return <Rows rows={values} />;
  return (
    <Stack gap="xs" className="facts-block">
      {values.map((one, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: reported lists have no ids
        <Value key={place} value={one} />
      ))}
    </Stack>
  );
}

function isFlat(one: unknown): one is Record<string, unknown> {
  return (
    typeof one === "object" &&
    one !== null &&
    !Array.isArray(one) &&
    Object.values(one).every((inner) => typeof inner !== "object" || inner === null)
  );
}

/** Rows of the same shape as a table. */
export function Rows({ rows, label = "Reported" }: { rows: Record<string, unknown>[]; label?: string }) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <div className="facts-block">
      <Scroll label={label}>
        <Table verticalSpacing={6} horizontalSpacing="sm" withRowBorders={false}>
          <Table.Thead>
            <Table.Tr>
              {names.map((name) => (
                <Table.Th key={name} fw={500} c="dimmed" style={{ whiteSpace: "nowrap" }}>
                  {named(name)}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row, place) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: reported lists have no ids
              <Table.Tr key={place} style={{ verticalAlign: "top" }}>
                {names.map((name) => (
                  <Table.Td key={name}>
                    <Value value={row[name]} />
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Scroll>
    </div>
  );
}

/** Text with line breaks. */
export function Lines({ text, what = "the text" }: { text: string; what?: string }) {
  return (
    <Group gap={4} wrap="nowrap" align="flex-start" style={{ minWidth: 0 }}>
      <Code block tabIndex={0} style={{ background: "var(--still-wash)", flex: 1, minWidth: 0 }}>
        {text.trimEnd()}
      </Code>
      <Copy value={text} what={what} />
    </Group>
  );
}
