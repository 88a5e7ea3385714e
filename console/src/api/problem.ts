// The platform's one error shape (RFC 9457), as something that can be thrown and shown.

export interface FieldError {
  pointer: string;
  message: string;
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly sentence: string,
    readonly wayOut: string,
    readonly correlationId: string | null = null,
    readonly fields: FieldError[] = [],
  ) {
    super(sentence);
    this.name = "Problem";
  }
}

export async function problemOf(response: Response): Promise<Problem> {
  const body = await response.json().catch(() => null);
  if (body && typeof body.detail === "string") {
    return new Problem(response.status, body.code, body.detail, body.way_out, body.correlation_id, body.errors ?? []);
  }
  const id = response.headers.get("x-correlation-id");
  return new Problem(
    response.status,
    "unexpected_answer",
    `The server returned ${response.status}.`,
    "Try again in a moment.",
    id,
  );
}

export function unreachable(): Problem {
  return new Problem(0, "unreachable", "Can't reach the server.", "Check your connection. The console keeps trying.");
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const words = error instanceof Error ? error.message : String(error);
  return new Problem(0, "console_error", words || "Something went wrong in the console.", "Reload the page.");
}
