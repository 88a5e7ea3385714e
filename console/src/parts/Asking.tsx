// The frame of every form dialog: fields, error, and the two buttons.

import { Button, Group, Stack } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemNote } from "./ProblemNote";
import { Window } from "./Window";

interface Props<T> {
  title: string;
  verb: string; // on the button
  act: () => Promise<T>;
  close: () => void;
  done?: (made: T) => void; // instead of closing
  ready?: boolean;
  danger?: boolean;
  size?: "lg";
  children: ReactNode;
}

export function Asking<T>({ title, verb, act, close, done, ready = true, danger, size, children }: Props<T>) {
  const client = useQueryClient();
  const asked = useMutation({
    mutationFn: act,
    onSuccess: (made) => {
      client.invalidateQueries();
      if (done) done(made);
      else close();
    },
  });
  return (
    <Window title={title} close={close} size={size}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) asked.mutate();
        }}
      >
        <Stack>
          {children}
          {asked.error && <ProblemNote error={asked.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" color={danger ? "red.8" : undefined} disabled={!ready} loading={asked.isPending}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Window>
  );
}
