"""`gpuaas explain [CODE]`: what an error code means, what to do about it, and with which exit code commands end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import failures, show
from ..failures import CliError
from ..options import Common

if TYPE_CHECKING:
    from gpuaas_sdk.client.errors import GpuaasError


def explain(code: str | None = None, /, *, common: Common = Common()) -> None:
    """What an error code means and what to do about it; without a code, all there are. Asks nobody, works offline.

    Example: gpuaas explain allocation_in_use
    Example: gpuaas explain -o json

    Parameters
    ----------
    code
        As an error shows it in brackets. An operation that failed has a code of its app: that one's way out is in
        `gpuaas operation show`.
    """
    if code is None:
        return _table(_every(), common)
    found = explained(code)
    if common.json:
        return show.as_json(found)
    print(f"{found['title']}.")
    rows = [
        ("What you can do", found["way_out"]),
        ("Try again", "yes, later" if found["retryable"] else "not as it is"),
    ]
    status = f"{found['status']}" if found["status"] else ""
    meaning = failures.MEANINGS[found["exit_code"]]
    return show.facts([*rows, ("HTTP status", status), ("Exit code", f"{found['exit_code']}, {meaning}")])


def explained(code: str) -> dict[str, Any]:
    known = _every()
    if code not in known:
        way_out = "Those of the platform: gpuaas explain. Those of an app stand with their operation: gpuaas triage ID"
        raise CliError(f"The platform has no error called {code}.", way_out, failures.NOT_FOUND)
    return known[code]


def _table(known: dict[str, dict[str, Any]], common: Common) -> None:
    if common.json:
        return show.as_json(list(known.values()))
    rows = [(one["code"], str(one["status"] or "-"), str(one["exit_code"]), one["title"]) for one in known.values()]
    return show.table(("CODE", "STATUS", "EXIT", "WHAT IT MEANS"), rows)


def _every() -> dict[str, dict[str, Any]]:
    """The platform's codes, and those the SDK gives by itself when there is no answer to read one from."""
    from gpuaas_sdk import errors

    found = {
        code: _view(code, one.status, one.title, one.way_out, one.retryable, errors.error_for(_problem(code, one)))
        for code, one in errors.known_problems().items()
    }
    lost = errors.ConnectionFailed("The platform does not answer")
    other = errors.BadAnswer("What answers there is not this platform, or a much newer one")
    for error in (lost, other):
        found[error.code] = _view(error.code, None, str(error), error.way_out, error.retryable, error)
    return found


def _problem(code: str, one: Any) -> Any:
    from gpuaas_sdk.client.errors import Problem

    return Problem(status=one.status, code=code)


def _view(
    code: str, status: int | None, title: str, way_out: str, retryable: bool, error: GpuaasError
) -> dict[str, Any]:
    said = {"code": code, "title": title, "way_out": way_out, "retryable": retryable, "status": status}
    return {**said, "exit_code": failures.exit_code(error)}
