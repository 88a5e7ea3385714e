// The trace of one request: result, cause, what to do, and the timeline.

import { Button, Card, Group, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { IconListSearch } from "@tabler/icons-react";
import { type FormEvent, useState } from "react";
import { useNavigate, useParams } from "react-router";
import { queries, type Schemas } from "../api/client";
import { Copy } from "../parts/Copy";
import { Empty, Page, Shown } from "../parts/Page";
import { exactly } from "../parts/time";
import { Story } from "./Story";

export function TriagePage() {
  const { correlationId } = useParams();
  return (
    <Page
      title="Triage"
      about="Every error and operation has a trace ID. Find everything that belongs to the same request."
    >
      <Ask key={correlationId} known={correlationId ?? ""} />
      {correlationId ? (
        <Found id={correlationId} />
      ) : (
        <Empty icon={<IconListSearch size={32} />} title="Paste a trace ID">
          Errors, operations, events and audit entries show it.
        </Empty>
      )}
    </Page>
  );
}

function Ask({ known }: { known: string }) {
  const [id, setId] = useState(known);
  const go = useNavigate();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    go(`/triage/${encodeURIComponent(id.trim())}`);
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <TextInput
          flex={1}
          maw={520}
          label="Trace ID"
          placeholder="cor-…"
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
          required
          withAsterisk={false}
        />
        <Button type="submit">Find</Button>
      </Group>
    </form>
  );
}

function Found({ id }: { id: string }) {
  const asked = queries.useQuery(
    "get",
    "/v1/triage/{correlation_id}",
    { params: { path: { correlation_id: id } } },
    { staleTime: 0 },
  );
  return <Shown of={asked}>{(triage) => <Trace triage={triage} />}</Shown>;
}

const SHOWN: Record<string, Set<string>> = {
  story: new Set(["request", "decision", "operation", "event", "step"]),
  all: new Set(["request", "decision", "operation", "event", "step", "span", "command", "log"]),
};

function Trace({ triage }: { triage: Schemas["TriageView"] }) {
  const [how, show] = useState("story");
  const entries = triage.timeline.filter((entry) => SHOWN[how]?.has(entry.kind));
  const { verdict } = triage;
  return (
    <Stack gap="lg">
      <Card>
        <Stack gap={6}>
          <Text fw={650}>{verdict.what}</Text>
          <Text size="sm">{verdict.why}</Text>
          {verdict.way_out && (
            <Text size="sm">
              <b>What to do: </b>
              {verdict.way_out}
            </Text>
          )}
        </Stack>
      </Card>
      <Card>
        <Group justify="space-between" mb="md">
          <Text component="h2" fw={650} m={0}>
            Timeline
          </Text>
          <Group gap="xs">
            <SegmentedControl
              size="xs"
              value={how}
              onChange={show}
              data={[
                { value: "story", label: "Summary" },
                { value: "all", label: "Everything" },
              ]}
              aria-label="Level of detail"
            />
            <Copy value={asText(triage)} what="the trace as text" />
          </Group>
        </Group>
        <Story entries={entries} />
        {triage.truncated && (
          <Text size="sm" c="dimmed" mt="md">
            Older log lines are not shown.
          </Text>
        )}
      </Card>
    </Stack>
  );
}

function asText({ correlation_id, verdict, timeline }: Schemas["TriageView"]): string {
  const lines = timeline.map((one) => `${one.at}  ${one.source.padEnd(10)} ${one.kind.padEnd(9)} ${one.sentence}`);
  return [
    correlation_id,
    verdict.what,
    verdict.why,
    verdict.way_out,
    `as of ${exactly(new Date().toISOString())}`,
    "",
    ...lines,
  ].join("\n");
}
