// A small dialog for what is said and done at once: a sentence of impact, perhaps a reason, and the button.

import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ProblemNote } from "./ProblemNote";

interface Props {
  title: string;
  impact: string;
  verb: string;
  close: () => void;
  act: (said: string) => Promise<unknown>;
  asks?: string; // the label of what must be said
  least?: number; // how many characters of it
  danger?: boolean;
  name?: string; // to be typed before it is done
}

export function Confirm({ title, impact, verb, close, act, asks, least = 0, danger, name }: Props) {
  const [said, say] = useState("");
  const [typed, type] = useState("");
  const client = useQueryClient();
  const done = useMutation({
    mutationFn: () => act(said.trim()),
    onSuccess: () => {
      client.invalidateQueries();
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={<Text fw={650}>{title}</Text>}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          done.mutate();
        }}
      >
        <Stack>
          <Text size="sm">{impact}</Text>
          {asks && (
            <TextInput label={asks} value={said} onChange={(event) => say(event.currentTarget.value)} data-autofocus />
          )}
          {name && (
            <TextInput
              label={`Type ${name} to confirm`}
              value={typed}
              onChange={(event) => type(event.currentTarget.value)}
              autoComplete="off"
              data-autofocus
            />
          )}
          {done.error && <ProblemNote error={done.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={close}>
              Leave it
            </Button>
            <Button
              type="submit"
              color={danger ? "red.8" : undefined}
              disabled={said.trim().length < least || (name !== undefined && typed !== name)}
              loading={done.isPending}
            >
              {verb}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
