"""Exit codes and error messages. Called by main.

Scripts use the exit code, people read the sentence and what to do, support needs the correlation id.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuaas_sdk.client.errors import GpuaasError

OK, BUG, USAGE, SIGN_IN, DENIED, NOT_FOUND, CONFLICT, INVALID, UNAVAILABLE, ENDED_BADLY = range(10)
INTERRUPTED = 130
MEANINGS = {
    OK: "success",
    BUG: "an unexpected error",
    USAGE: "invalid command or option",
    SIGN_IN: "not signed in",
    DENIED: "not permitted",
    NOT_FOUND: "not found",
    CONFLICT: "conflict with the current state",
    INVALID: "invalid request",
    UNAVAILABLE: "the platform does not answer",
    ENDED_BADLY: "the operation did not succeed",
    INTERRUPTED: "interrupted with Ctrl-C; a started operation continues",
}


class CliError(Exception):
    """An error that the CLI itself detected."""

    def __init__(self, sentence: str, way_out: str, exit_code: int) -> None:
        super().__init__(sentence)
        self.way_out, self.exit_code = way_out, exit_code


def exit_code(error: GpuaasError) -> int:
    from gpuaas_sdk import errors

    table = {
        errors.Unauthenticated: SIGN_IN,
        errors.Denied: DENIED,
        errors.NotFound: NOT_FOUND,
        errors.Conflict: CONFLICT,
        errors.Gone: CONFLICT,
        errors.Invalid: INVALID,
        errors.RateLimited: UNAVAILABLE,
        errors.Unavailable: UNAVAILABLE,
        errors.ConnectionFailed: UNAVAILABLE,
        errors.BadAnswer: UNAVAILABLE,
    }
    return next((code for kind, code in table.items() if isinstance(error, kind)), BUG)


def tell(sentence: str, way_out: str = "", *, code: str = "", correlation_id: str = "", fields: list[str] = []) -> None:  # noqa: B006
    """Print an error to stderr: the sentence, what to do, and the ids for support."""
    lines = [f"Error: {sentence}", *(f"  {field}" for field in fields)]
    if way_out:
        lines.append(f"What you can do: {way_out}")
    facts = [f"code {code}" if code else "", f"correlation id {correlation_id}" if correlation_id else ""]
    if any(facts):
        lines.append("(" + ", ".join(fact for fact in facts if fact) + ")")
    print("\n".join(lines), file=sys.stderr)


def tell_any(error: Exception) -> int:
    """Print an error message for any exception and return the exit code. With GPUAAS_DEBUG, an unexpected exception is
    raised instead."""
    from gpuaas_sdk.client.errors import GpuaasError
    from gpuaas_sdk.client.request import EmptyId

    if isinstance(error, CliError):
        tell(str(error), error.way_out)
        return error.exit_code
    if isinstance(error, GpuaasError):
        return tell_error(error)
    if isinstance(error, EmptyId):
        tell("An id or a name is empty.", "Check that every variable in your script is set.")
        return USAGE
    if os.environ.get("GPUAAS_DEBUG"):
        raise error
    way_out = "Run it again with GPUAAS_DEBUG=1 and report the output."
    tell(f"Unexpected error (a bug): {type(error).__name__}: {error}", way_out)
    return BUG


def tell_error(error: GpuaasError) -> int:
    """Print an error message for an SDK error and return the exit code."""
    code = exit_code(error)
    way_out = "Sign in again: gpuaas login" if code == SIGN_IN else error.way_out
    fields = [f"{one.pointer or 'request'}: {one.message}" for one in getattr(error, "errors", [])]
    tell(str(error), way_out, code=error.code, correlation_id=error.correlation_id, fields=fields)
    return code
