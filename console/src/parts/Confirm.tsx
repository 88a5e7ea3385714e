// A confirmation: one sentence of impact, optionally one field or the name to type, and the button.

import { Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Asking } from "./Asking";

interface Props {
  title: string;
  impact: string;
  verb: string;
  close: () => void;
  act: (answer: string) => Promise<unknown>;
  asks?: string; // the label of a field to fill in
  least?: number; // its minimum length
  danger?: boolean;
  name?: string; // to be typed to confirm
}

export function Confirm({ impact, act, asks, least = 0, name, ...frame }: Props) {
  const [answer, setAnswer] = useState("");
  const [typed, type] = useState("");
  const ready = answer.trim().length >= least && (name === undefined || typed === name);
  return (
    <Asking {...frame} act={() => act(answer.trim())} ready={ready}>
      <Text size="sm">{impact}</Text>
      {asks && (
        <TextInput
          label={asks}
          value={answer}
          onChange={(event) => setAnswer(event.currentTarget.value)}
          data-autofocus
        />
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
