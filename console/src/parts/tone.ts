// The tone (colour) of a state.

export type Tone = "good" | "busy" | "warn" | "bad" | "still";

const BY_TONE: Record<Tone, string> = {
  good: "running ready healthy succeeded active published allowed accepted True done enabled registered received",
  busy: "requested provisioning starting stopping updating upgrading deleting queued progressing pending removing draining enrolling releasing rotating awaiting_approval open leased next retiring offered",
  warn: "degraded drained cordoned stopped deprecated needs_attention unknown Unknown draft canceled superseded expired interrupted",
  bad: "failed unhealthy lost down suspended revoked withdrawn denied False refused",
  still: "deleted removed released retired closed disabled ended not_enabled",
};

const TONES = new Map(
  Object.entries(BY_TONE).flatMap(([tone, states]) => states.split(" ").map((state) => [state, tone as Tone] as const)),
);

export function hasTone(state: string): boolean {
  return TONES.has(state);
}

/** A running operation is in progress; a running instance is fine. */
export function toneOf(state: string, noun: "thing" | "operation" = "thing"): Tone {
  if (noun === "operation" && state === "running") return "busy";
  return TONES.get(state) ?? "still";
}

/** A reason that the API returns as part of a sentence, as a sentence of its own. */
export function sentence(reason: string): string {
  const text = reason.charAt(0).toUpperCase() + reason.slice(1);
  return /[.!?…]$/.test(text) || !text ? text : `${text}.`;
}
