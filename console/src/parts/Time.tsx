// A relative time with the exact time on hover. All of them update together.

import { useSyncExternalStore } from "react";
import { ago, exactly } from "./time";

let now = Date.now();
const listeners = new Set<() => void>();
setInterval(() => {
  now = Date.now();
  for (const notify of listeners) notify();
}, 10_000);

export function useNow(): number {
  return useSyncExternalStore(
    (notify) => {
      listeners.add(notify);
      return () => listeners.delete(notify);
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

/** A time in the future, such as the end of a lease. */
export function Until({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactly(at)} style={{ whiteSpace: "nowrap" }}>
      {ago(at, useNow())}
    </time>
  );
}
