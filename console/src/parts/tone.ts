// What a state means for a person at a glance: one of five tones, by the platform's own lifecycles.

export type Tone = "good" | "busy" | "warn" | "bad" | "still";

const BY_TONE: Record<Tone, string> = {
  good: "running ready healthy succeeded active published allowed accepted True done",
  busy: "requested provisioning starting stopping updating upgrading deleting queued progressing pending removing draining enrolling releasing rotating awaiting_approval open",
  warn: "degraded drained cordoned stopped deprecated needs_attention unknown Unknown draft canceled superseded expired",
  bad: "failed unhealthy lost down suspended revoked withdrawn denied False",
  still: "deleted removed released retired closed disabled",
};

const TONES = new Map(
  Object.entries(BY_TONE).flatMap(([tone, states]) => states.split(" ").map((state) => [state, tone as Tone] as const)),
);

/** An operation that runs is on its way; an instance that runs has arrived. */
export function toneOf(state: string, noun: "thing" | "operation" = "thing"): Tone {
  if (noun === "operation" && state === "running") return "busy";
  return TONES.get(state) ?? "still";
}

export function words(state: string): string {
  const plain = state.replaceAll("_", " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** A reason the platform gives as a part of a sentence, as one of its own. */
export function sentence(reason: string): string {
  const text = reason.charAt(0).toUpperCase() + reason.slice(1);
  return /[.!?…]$/.test(text) || !text ? text : `${text}.`;
}
