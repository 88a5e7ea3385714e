"""Prints the parts of `adapter_detail` that all apps share (docs/guides/app-team.md): preflight, drift, failure.

Values of an unexpected shape are skipped, because apps write them without a schema. Called by the show commands.
"""

from __future__ import annotations

from typing import Any

from . import show

MOST_CHECKS, MOST_LINES = 40, 8


def preflight(detail: dict[str, Any] | None) -> None:
    """The preflight checks of each machine; with many checks only the failed ones."""
    rows = [(str(one.get("host")), row) for one in _named(detail, "preflight") for row in _rows(one.get("checks"))]
    shown = [(host, row) for host, row in rows if len(rows) <= MOST_CHECKS or not row.get("ok")]
    if not rows:
        return
    print()
    if shown:
        answers = ((host, row, "ok" if row.get("ok") else "failed") for host, row in shown)
        words = [(host, str(row.get("check")), ok, str(row.get("sentence"))) for host, row, ok in answers]
        show.table(("MACHINE", "CHECK", "RESULT", "DETAIL"), words)
    if len(shown) < len(rows):
        print(f"{len(rows) - len(shown)} other checks passed.")


def drift(detail: dict[str, Any] | None) -> None:
    """Differences from the desired state, and how to revert each."""
    keys = ("what", "where", "kind", "said", "revert")
    rows = [tuple(str(row.get(key) or "-") for key in keys) for row in _named(detail, "drift")]
    if rows:
        print()
        show.table(("DRIFT", "WHERE", "KIND", "FOUND", "TO REVERT"), rows)


def failure(detail: dict[str, Any] | None) -> None:
    """Of a failed operation: step, host, failed services, failed checks, and the last lines of output."""
    found = detail or {}
    rows = [("failed step", _text(found, "step")), ("on host", _text(found, "host"))]
    rows += [
        ("service", _service(one))
        for one in _rows(found.get("units"))
        if one.get("active") not in ("active", "inactive")
    ]
    rows += [
        ("check", str(one.get("sentence") or one.get("check")))
        for one in _rows(found.get("checks"))
        if not one.get("ok")
    ]
    output, log = _text(found, "output").splitlines(), found.get("log")
    rows += [("output", line) for line in output[-MOST_LINES:]]
    rows += [("log", str(line)) for line in log[-MOST_LINES:]] if isinstance(log, list) else []
    if any(value for _, value in rows):
        print()
        show.facts(rows)


def _named(detail: dict[str, Any] | None, name: str) -> list[dict[str, Any]]:
    return _rows((detail or {}).get(name))


def _rows(value: Any) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _text(detail: dict[str, Any], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""


def _service(unit: dict[str, Any]) -> str:
    return f"{unit.get('unit')} is {unit.get('active')} ({unit.get('sub')}, {unit.get('result')})"
