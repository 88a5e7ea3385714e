// What still holds a member that is being emptied, and when it is free.

import { Card, Text } from "@mantine/core";
import { Rows } from "../parts/Facts";
import { Until } from "../parts/Time";
import { type Detail, rowsOf, textOf } from "./read";

export function Forecast({ detail }: { detail: Detail }) {
  const forecast = (detail?.forecast ?? {}) as Record<string, unknown>;
  const jobs = rowsOf(forecast.jobs);
  if (!jobs.length) return null;
  const free = textOf(forecast.free_at);
  const late = textOf(forecast.deadline_at);
  const total = Number(forecast.jobs_total ?? jobs.length);
  return (
    <Card data-forecast>
      <Text component="h2" fw={650} m={0} mb={4}>
        What it waits for
      </Text>
      <Text size="sm" mb="sm" component="div">
        {free ? (
          <>
            It is free <Until at={free} />, if nothing ends earlier.
          </>
        ) : (
          "What runs has no time limit: nobody can say when it is free."
        )}{" "}
        {late && (
          <>
            The time that was given is over <Until at={late} />
            {forecast.at_deadline === "requeue"
              ? "; what still runs then begins anew elsewhere."
              : "; it is given back then."}
          </>
        )}
      </Text>
      <Rows rows={jobs} label="What it waits for" />
      {total > jobs.length && (
        <Text size="sm" c="dimmed" mt="xs">
          And {total - jobs.length} more.
        </Text>
      )}
    </Card>
  );
}
