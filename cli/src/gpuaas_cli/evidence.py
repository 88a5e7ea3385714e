"""What a failed operation saw, for people.

The names are a convention of the guide for app teams (docs/guides/app-team.md): an app that uses them in
`adapter_detail` is shown well, any other is shown with `-o json`.
"""

from __future__ import annotations

from typing import Any

from . import show

MOST_LINES = 8


def tell(detail: dict[str, Any] | None) -> None:
    """The step and its host, services that are not well, answers that were no, and the last words."""
    found = detail or {}
    rows = [("failed step", _text(found, "step")), ("on host", _text(found, "host"))]
    rows += [
        ("service", _service(one)) for one in _dicts(found, "units") if one.get("active") not in ("active", "inactive")
    ]
    rows += [
        ("check", str(one.get("sentence") or one.get("check"))) for one in _dicts(found, "checks") if not one.get("ok")
    ]
    said, log = _text(found, "output").splitlines(), found.get("log")
    rows += [("said", line) for line in said[-MOST_LINES:]]
    rows += [("log", str(line)) for line in log[-MOST_LINES:]] if isinstance(log, list) else []
    if any(value for _, value in rows):
        print()
        show.facts(rows)


def _text(detail: dict[str, Any], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""


def _dicts(detail: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = detail.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _service(unit: dict[str, Any]) -> str:
    return f"{unit.get('unit')} is {unit.get('active')} ({unit.get('sub')}, {unit.get('result')})"
