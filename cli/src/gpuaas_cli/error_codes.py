"""The error codes of the platform and the SDK, each with what to do and the exit code. Read by `explain` and the MCP
tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import failures
from .failures import CliError

if TYPE_CHECKING:
    from gpuaas_sdk.client.errors import GpuaasError


def explained(code: str) -> dict[str, Any]:
    known = every_code()
    if code not in known:
        way_out = (
            "Codes of the platform: gpuaas explain. Codes of an app: gpuaas operation show ID, or gpuaas triage ID"
        )
        raise CliError(f"The platform has no error code {code}.", way_out, failures.NOT_FOUND)
    return known[code]


def every_code() -> dict[str, dict[str, Any]]:
    """Return all error codes by name: those of the platform, and the SDK's own codes for a missing or unreadable
    answer."""
    from gpuaas_sdk import errors

    found = {
        code: _view(code, one.status, one.title, one.way_out, one.retryable, errors.error_for(_problem(code, one)))
        for code, one in errors.known_problems().items()
    }
    lost = errors.ConnectionFailed("The platform does not answer")
    other = errors.BadAnswer("The server at this address is not this platform, or a much newer version")
    for error in (lost, other):
        found[error.code] = _view(error.code, None, str(error), error.way_out, error.retryable, error)
    return found


def _problem(code: str, one: Any) -> Any:
    from gpuaas_sdk.client.errors import Problem

    return Problem(status=one.status, code=code)


def _view(
    code: str, status: int | None, title: str, way_out: str, retryable: bool, error: GpuaasError
) -> dict[str, Any]:
    facts = {"code": code, "title": title, "way_out": way_out, "retryable": retryable, "status": status}
    return {**facts, "exit_code": failures.exit_code(error)}
