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
  const said = await response.json().catch(() => null);
  if (said && typeof said.detail === "string") {
    return new Problem(response.status, said.code, said.detail, said.way_out, said.correlation_id, said.errors ?? []);
  }
  const id = response.headers.get("x-correlation-id");
  return new Problem(
    response.status,
    "unexpected_answer",
    `The platform answered ${response.status}.`,
    "Try again.",
    id,
  );
}

export function unreachable(): Problem {
  return new Problem(0, "unreachable", "The platform cannot be reached.", "Check your connection; it is tried again.");
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const words = error instanceof Error ? error.message : String(error);
  return new Problem(0, "console_error", words || "Something went wrong in the console.", "Load the page again.");
}
