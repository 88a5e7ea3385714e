// An error: what failed, what to do, and the trace ID.

import { Anchor, Box, Button, Group, List, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { Link } from "react-router";
import { asProblem } from "../api/problem";
import { wayOutOf } from "../api/waysOut";
import { Copy } from "./Copy";

export function ProblemNote({ error, again }: { error: unknown; again?: () => void }) {
  const problem = asProblem(error);
  return (
    <Box
      role="alert"
      p="md"
      style={{ background: "var(--bad-wash)", borderRadius: 12, border: "1px solid var(--line)" }}
    >
      <Group align="flex-start" gap="sm" wrap="nowrap">
        <IconAlertTriangle size={20} color="var(--bad)" style={{ flex: "none", marginTop: 2 }} aria-hidden />
        <Stack gap={4} style={{ minWidth: 0 }}>
          <Text fw={600}>{problem.sentence}</Text>
          <Text size="sm">{wayOutOf(problem.code, problem.wayOut)}</Text>
          {problem.fields.length > 0 && (
            <List size="sm">
              {problem.fields.map((field) => (
                <List.Item key={field.pointer + field.message}>
                  <span className="mono">{field.pointer}</span>: {field.message}
                </List.Item>
              ))}
            </List>
          )}
          {problem.correlationId && <CorrelationLine id={problem.correlationId} />}
          {again && (
            <Group mt={4}>
              <Button size="xs" variant="default" onClick={again}>
                Try again
              </Button>
            </Group>
          )}
        </Stack>
      </Group>
    </Box>
  );
}

export function CorrelationLine({ id, bare = false }: { id: string; bare?: boolean }) {
  return (
    <Group gap={4} wrap="nowrap" style={{ minWidth: 0 }}>
      {!bare && (
        <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
          Trace ID
        </Text>
      )}
      <Anchor component={Link} to={`/triage/${id}`} size="xs" className="mono" truncate>
        {id}
      </Anchor>
      <Copy value={id} what="the trace ID" />
    </Group>
  );
}
