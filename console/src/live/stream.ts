// Follows a project's events for as long as somebody looks, and continues after a lost connection where it was.

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

interface Listener {
  heard: (event: PlatformEvent) => void;
  missed: () => void; // something may have happened that nobody told us
  standing: (now: Standing) => void;
}

const QUIET_MS = 40_000; // the platform says something every 15 s
const LONGEST_WAIT_MS = 10_000;

export async function follow(projectId: string, listener: Listener, stop: AbortSignal): Promise<void> {
  let cursor: string | null = null;
  let failures = 0;
  while (!stop.aborted) {
    try {
      if (cursor === null) {
        cursor = await newest(projectId, stop);
        listener.missed(); // what was read before this moment may be older than it
      }
      const opened = () => {
        failures = 0;
        listener.standing("live");
      };
      for await (const event of events(projectId, cursor, stop, opened)) {
        cursor = event.id || cursor;
        listener.heard(JSON.parse(event.data));
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

/** With the store's epoch: a store that was put back to an earlier time is noticed. */
async function newest(projectId: string, signal: AbortSignal): Promise<string> {
  const path = { project_id: projectId };
  const { data } = await api.GET("/v1/projects/{project_id}/events", { params: { path, query: { limit: 1 } }, signal });
  return data ? `${data.next_after.split(".")[0]}.${data.head}` : "0";
}

async function* events(projectId: string, after: string, stop: AbortSignal, opened: () => void) {
  const silence = new AbortController();
  const cut = () => silence.abort();
  const quiet = () => setTimeout(cut, QUIET_MS);
  let timer = quiet();
  window.addEventListener("offline", cut); // it would hang, and look alive, for as long as it may be quiet
  try {
    const response = await fetch(`/v1/projects/${projectId}/events/stream?after=${encodeURIComponent(after)}`, {
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

/** Shorter when the browser says that it is back on a network. */
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
