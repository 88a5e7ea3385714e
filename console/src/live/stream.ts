// Follows the events of a project or a tenant, and resumes after a lost connection.

import { api } from "../api/client";
import { SseReader } from "./sse";

export type Standing = "connecting" | "live" | "lost";

export interface PlatformEvent {
  type: string;
  subject: string;
  sequence: number;
  time: string;
  correlationid: string;
  data: Record<string, unknown>;
}

export type Source = { project_id: string } | { tenant_id: string };

export interface Listener {
  heard: (event: PlatformEvent, cursor: string) => void;
  missed: () => void; // events before this moment may be unknown
  standing: (now: Standing) => void;
}

const QUIET_MS = 40_000; // the server sends something every 15 s
const LONGEST_WAIT_MS = 10_000;

/** `after`: the last event known; without it, from now on. */
export async function follow(
  source: Source,
  listener: Listener,
  stop: AbortSignal,
  after: string | null = null,
): Promise<void> {
  let cursor = after;
  let failures = 0;
  while (!stop.aborted) {
    try {
      if (cursor === null) {
        cursor = await newest(source, stop);
        listener.missed(); // answers read before this moment may be older
      }
      const opened = () => {
        failures = 0;
        listener.standing("live");
      };
      for await (const event of events(source, cursor, stop, opened)) {
        cursor = event.id || cursor;
        listener.heard(JSON.parse(event.data), cursor);
      }
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof Gone) cursor = null;
    }
    if (stop.aborted) return;
    listener.standing("lost");
    await pause(Math.min(LONGEST_WAIT_MS, 500 * 2 ** failures++), stop);
  }
}

class Gone extends Error {}

/** With the store's epoch, so that a restored backup is detected. */
async function newest(source: Source, signal: AbortSignal): Promise<string> {
  const query = { limit: 1 };
  const { data } =
    "tenant_id" in source
      ? await api.GET("/v1/tenants/{tenant_id}/events", { params: { path: source, query }, signal })
      : await api.GET("/v1/projects/{project_id}/events", { params: { path: source, query }, signal });
  return data ? `${data.next_after.split(".")[0]}.${data.head}` : "0";
}

export function nameOf(source: Source): string {
  return "tenant_id" in source ? `tenants/${source.tenant_id}` : `projects/${source.project_id}`;
}

async function* events(source: Source, after: string, stop: AbortSignal, opened: () => void) {
  const silence = new AbortController();
  const cut = () => silence.abort();
  const quiet = () => setTimeout(cut, QUIET_MS);
  let timer = quiet();
  window.addEventListener("offline", cut); // otherwise it would hang until QUIET_MS have passed
  try {
    const response = await fetch(`/v1/${nameOf(source)}/events/stream?after=${encodeURIComponent(after)}`, {
      signal: AbortSignal.any([stop, silence.signal]),
      headers: { Accept: "text/event-stream" },
    });
    if (response.status === 410) throw new Gone();
    if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
    opened();
    const reader = new SseReader();
    const decoder = new TextDecoder();
    for await (const chunk of chunks(response.body)) {
      clearTimeout(timer);
      timer = quiet();
      yield* reader.feed(decoder.decode(chunk, { stream: true }));
    }
  } finally {
    clearTimeout(timer);
    window.removeEventListener("offline", cut);
  }
}

async function* chunks(body: ReadableStream<Uint8Array>) {
  const reader = body.getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Ends early when the browser is online again. */
function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const over = () => {
      clearTimeout(timer);
      window.removeEventListener("online", over);
      stop.removeEventListener("abort", over);
      done();
    };
    const timer = setTimeout(over, ms);
    window.addEventListener("online", over);
    stop.addEventListener("abort", over);
  });
}
