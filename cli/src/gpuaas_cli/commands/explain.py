"""`gpuaas explain [CODE]`: the meaning of an error code, what to do, and the exit code."""

from __future__ import annotations

from typing import Any

from .. import failures, show
from ..error_codes import every_code, explained
from ..options import Common


def explain(code: str | None = None, /, *, common: Common = Common()) -> None:
    """Explain an error code and what to do; without a code, list all codes. Works offline.

    Example: gpuaas explain allocation_in_use
    Example: gpuaas explain -o json

    Parameters
    ----------
    code
        The code shown with an error. Codes of an app are explained by `gpuaas operation show`.
    """
    if code is None:
        return _table(every_code(), common)
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


def _table(known: dict[str, dict[str, Any]], common: Common) -> None:
    if common.json:
        return show.as_json(list(known.values()))
    rows = [(one["code"], str(one["status"] or "-"), str(one["exit_code"]), one["title"]) for one in known.values()]
    return show.table(("CODE", "STATUS", "EXIT", "MEANING"), rows)
