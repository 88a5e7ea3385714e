"""`gpuaas explain [CODE]`: the meaning of an error code, what to do, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import failures, show
from ..failures import CliError
from ..options import Common

if TYPE_CHECKING:
    from gpuaas_sdk.errors import GpuaasError


def explain(code: str | None = None, /, *, common: Common = Common()) -> None:
    """What an error code means and what to do about it; without a code, all codes. Works offline.

    Example: gpuaas explain allocation_in_use
    Example: gpuaas explain -o json

    Parameters
    ----------
    code
        The code shown with an error. Codes of an app are explained by `gpuaas operation show`.
    """
    if code is None:
        return _table(_every(), common)
    found = explained(code)
    if common.json:
        return show.as_json(found)
    print(f"{found['title']}.")
    rows = [
        ("What you can do", found["way_out"]),
        ("Retry", "yes, later" if found["retryable"] else "no, change the request first"),
    ]
    status = f"{found['status']}" if found["status"] else ""
    meaning = failures.MEANINGS[found["exit_code"]]
    return show.facts([*rows, ("HTTP status", status), ("Exit code", f"{found['exit_code']}, {meaning}")])


def explained(code: str) -> dict[str, Any]:
    known = _every()
    if code not in known:
        way_out = (
            "Codes of the platform: gpuaas explain. Codes of an app: gpuaas operation show ID, or gpuaas triage ID"
        )
        raise CliError(f"The platform has no error code {code}.", way_out, failures.NOT_FOUND)
    return known[code]


def _table(known: dict[str, dict[str, Any]], common: Common) -> None:
    if common.json:
        return show.as_json(list(known.values()))
    rows = [(one["code"], str(one["status"] or "-"), str(one["exit_code"]), one["title"]) for one in known.values()]
    return show.table(("CODE", "STATUS", "EXIT", "MEANING"), rows)


def _every() -> dict[str, dict[str, Any]]:
    """The platform's codes, and the SDK's own codes for a missing or unreadable answer."""
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
    from gpuaas_sdk.errors import Problem

    return Problem(status=one.status, code=code)


def _view(
    code: str, status: int | None, title: str, way_out: str, retryable: bool, error: GpuaasError
) -> dict[str, Any]:
    facts = {"code": code, "title": title, "way_out": way_out, "retryable": retryable, "status": status}
    return {**facts, "exit_code": failures.exit_code(error)}
