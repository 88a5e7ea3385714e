// A small dialog for what is said and done at once: a sentence of impact, perhaps a reason, and the button.

import { Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Asking } from "./Asking";

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

export function Confirm({ impact, act, asks, least = 0, name, ...frame }: Props) {
  const [said, say] = useState("");
  const [typed, type] = useState("");
  const ready = said.trim().length >= least && (name === undefined || typed === name);
  return (
    <Asking {...frame} act={() => act(said.trim())} ready={ready}>
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
    </Asking>
  );
}
