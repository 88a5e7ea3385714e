// The jobs a draining member waits for, and when it will be free.

import { Card, Text } from "@mantine/core";
import { Rows } from "../parts/Facts";
import { Until } from "../parts/Time";
import { type Detail, forecastOf, rowsOf, textOf } from "./read";

export function Forecast({ detail }: { detail: Detail }) {
  const forecast = forecastOf(detail);
  const jobs = rowsOf<Record<string, unknown>>(forecast.jobs);
  if (!jobs.length) return null;
  const free = textOf(forecast.free_at);
  const late = textOf(forecast.deadline_at);
  const total = Number(forecast.jobs_total ?? jobs.length);
  return (
    <Card data-forecast>
      <Text component="h2" fw={650} m={0} mb={4}>
        Waiting for
      </Text>
      <Text size="sm" mb="sm" component="div">
        {free ? (
          <>
            Free <Until at={free} /> at the latest.
          </>
        ) : (
          "A running job has no time limit, so there is no estimate."
        )}{" "}
        {late && (
          <>
            The time limit ends <Until at={late} />
            {forecast.at_deadline === "requeue"
              ? "; jobs that still run are then requeued."
              : "; the drain is then canceled."}
          </>
        )}
      </Text>
      <Rows rows={jobs} label="Running jobs" />
      {total > jobs.length && (
        <Text size="sm" c="dimmed" mt="xs">
          {total - jobs.length} more
        </Text>
      )}
    </Card>
  );
}
