"""Where the seconds of an operation go: every command on a host and every request to the core, from the programs' logs.

Printed by `bringup.py --profile`. Counted from the moment the controller began with the operation.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Span:
    whose: str  # the correlation id of its operation
    began: float
    ended: float
    what: str


def of(*logs: Path) -> list[str]:
    lines = [line for log in logs for line in _lines(log)]
    spans = sorted((span for line in lines if (span := _span(line))), key=lambda one: one.began)
    shown = []
    for line in (one for one in lines if one.get("event") == "reconcile starts"):
        at, whose = _moment(line), line["correlation_id"]
        shown.append(f"{line['operation_kind']} {line['operation_id']}")
        shown += [f"  {s.began - at:6.2f} - {s.ended - at:6.2f} s  {s.what}" for s in spans if s.whose == whose]
    return shown


def _lines(log: Path) -> Iterator[dict[str, Any]]:
    for text in log.read_text(errors="replace").splitlines():
        try:
            yield json.loads(text)
        except ValueError:
            continue  # a traceback, or a line that is being written


def _span(line: dict[str, Any]) -> Span | None:
    whose, ended = line.get("correlation_id"), _moment(line)
    if not whose:
        return None
    if line.get("kind") == "command":
        what = f"{line['step']:16s} on {line['host']}"
    elif line.get("event") == "request":
        what = f"{line['method']} .../{line['path'].rpartition('/')[2]} {line['status']}"
    elif line.get("event") == "reconcile ends":
        what = f"reconcile ends: {line.get('outcome')}"
    else:
        return None
    return Span(whose, ended - line.get("ms", 0) / 1000, ended, what)


def _moment(line: dict[str, Any]) -> float:
    text = line.get("timestamp")
    return datetime.fromisoformat(text).timestamp() if text else 0.0
