// The steps of an operation with their durations, from its events.

import { Card, Group, Loader, Text, ThemeIcon, Timeline } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { api } from "../api/client";
import { useEvery } from "../api/usePages";
import { useProjectId } from "../app/place";
import { Time } from "../parts/Time";
import { lasted } from "../parts/time";
import { type Operation, type Step, stepsOf } from "./kinds";

export function Steps({ operation }: { operation: Operation }) {
  const path = { project_id: useProjectId() };
  const found = useEvery("/v1/projects/{project_id}/events", [path, operation.id], async (after) => {
    const query = { subject: operation.id, limit: 100, after };
    const { data } = await api.GET("/v1/projects/{project_id}/events", { params: { path, query } });
    return data ? { data: { items: data.items, next_cursor: data.items.length === 100 ? data.next_after : null } } : {};
  });
  const steps = stepsOf(found.data ?? [], operation.finished_at);
  if (!steps.length) return null;
  const last = steps.length - 1;
  return (
    <Card>
      <Text component="h2" fw={650} m={0} mb="md">
        Steps
      </Text>
      <Timeline bulletSize={22} lineWidth={2} active={steps.length} color="iris" data-steps>
        {steps.map((step, place) => (
          <Timeline.Item key={step.at + step.title} bullet={<Mark operation={operation} last={place === last} />}>
            <Line step={step} />
          </Timeline.Item>
        ))}
      </Timeline>
    </Card>
  );
}

function Mark({ operation, last }: { operation: Operation; last: boolean }) {
  if (last && !operation.finished_at)
    return <Loader type="oval" size={12} color="white" role="img" aria-label="running" />;
  if (last && operation.status !== "succeeded") {
    return (
      <ThemeIcon size={22} radius="xl" color="red.8" role="img" aria-label="failed here">
        <IconX size={13} />
      </ThemeIcon>
    );
  }
  return <IconCheck size={13} aria-label="done" />;
}

function Line({ step }: { step: Step }) {
  return (
    <Group justify="space-between" wrap="nowrap" gap="sm" align="flex-start">
      <Text size="sm" data-step>
        {step.title}
      </Text>
      <Text size="xs" c="dimmed" component="span" style={{ whiteSpace: "nowrap" }}>
        {step.until ? lasted(step.at, step.until) : <Time at={step.at} />}
      </Text>
    </Group>
  );
}
