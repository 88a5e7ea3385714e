// A moment: relative to now, the exact one on hover. All of them tick together.

import { useSyncExternalStore } from "react";
import { ago, exactly } from "./time";

let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const tell of listeners) tell();
}, 10_000);

export function useNow(): number {
  return useSyncExternalStore(
    (tell) => {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
    () => now,
  );
}

export function Time({ at }: { at: string | null | undefined }) {
  const seen = useNow();
  if (!at) return <>never</>;
  return (
    <time dateTime={at} title={exactly(at)} style={{ whiteSpace: "nowrap" }}>
      {ago(at, Math.max(seen, Date.parse(at)))}
    </time>
  );
}

/** For moments to come, such as the end of a lease. */
export function Until({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactly(at)} style={{ whiteSpace: "nowrap" }}>
      {ago(at, useNow())}
    </time>
  );
}
