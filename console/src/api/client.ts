// The typed client of contracts/openapi.json, with the headers every request carries.
//
// A change carries the session's CSRF token and an Idempotency-Key. When the connection breaks
// before the answer it is sent again with the same key, so it happens once.

import createFetch, { type Middleware } from "openapi-fetch";
import createQueries from "openapi-react-query";
import { csrfToken } from "./csrf";
import { Problem, problemOf, unreachable } from "./problem";
import type { components, paths } from "./types.gen";

export type Schemas = components["schemas"];
const SAFE = new Set(["GET", "HEAD"]);
const WAITS_MS = [300, 1000, 3000];

let onSignedOut: () => void = () => {};
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

const carried: Middleware = {
  onRequest({ request }) {
    if (SAFE.has(request.method)) return;
    const csrf = csrfToken();
    if (csrf) request.headers.set("X-CSRF-Token", csrf);
    if (!request.headers.has("Idempotency-Key")) request.headers.set("Idempotency-Key", crypto.randomUUID());
  },
  async onResponse({ response, schemaPath }) {
    if (response.ok) return;
    const problem = await problemOf(response);
    if (problem.status === 401 && schemaPath !== "/v1/auth/session") onSignedOut();
    throw problem;
  },
};

async function patient(request: Request): Promise<Response> {
  for (const wait of WAITS_MS) {
    try {
      return await fetch(request.clone());
    } catch (error) {
      if (request.signal.aborted) throw error;
      await new Promise((done) => setTimeout(done, wait));
    }
  }
  return fetch(request).catch(() => {
    throw unreachable();
  });
}

export const api = createFetch<paths>({ baseUrl: window.location.origin, fetch: patient });
api.use(carried);
export const queries = createQueries(api);

/** A retry helps only where the platform may answer otherwise next time. */
export function worthAnotherTry(failures: number, error: unknown): boolean {
  const status = error instanceof Problem ? error.status : 0;
  return failures < 3 && (status === 0 || status >= 500);
}
