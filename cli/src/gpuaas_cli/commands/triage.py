"""`gpuaas triage ID`: from the correlation id of an error to why it happened and what to do."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from .. import show
from ..options import Looking
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk.models import EntryView, TriageView

COLOURS = {"error": "red", "warning": "yellow", "debug": "dim"}


def triage(correlation_id: str, *, common: Looking = Looking()) -> None:
    """Everything known under a correlation id, in order, and what to do about it.

    The id is in every error, every operation and every event. You see what you may see: your projects, your own acts.

    Example: gpuaas triage cor-5f2c0a7e91d34b
    Example: gpuaas triage cor-5f2c0a7e91d34b -o json

    Parameters
    ----------
    correlation_id
        As an error, `gpuaas operation show` or an event shows it.
    """
    with session(common) as at:
        found = at.client.read_triage(correlation_id)
    if common.json:
        return show.as_json(found)
    return _tell(found)


def _tell(found: TriageView) -> None:
    said = found.verdict
    rows = [("What", said.what), ("Why", said.why + (f" ({said.code})" if said.code else ""))]
    rows += [("First sign", sign)] if (sign := _first_sign(found)) else []
    rows += [("What you can do", said.way_out)] if said.way_out else []
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        if words:
            print(_paint(f"{name}:".ljust(width + 1), "bold") + f" {_printable(words)}")
    print()
    if found.truncated:
        print("(Older log lines are left out.)")
    if found.timeline:
        print(_paint(f"{_moment(found.timeline[0]):%A %Y-%m-%d, %Z}. Lines with ! went wrong.", "dim"))
    widths = [max((len(getattr(one, name)) for one in found.timeline), default=0) for name in ("source", "kind")]
    for entry in found.timeline:
        print(_line(entry, *widths))


def _first_sign(found: TriageView) -> str:
    """What went wrong first, where the work was done: often nearer to the cause than the verdict."""
    return next((one.sentence for one in found.timeline if one.source != "core" and _wrong(one)), "")


def _wrong(entry: EntryView) -> bool:
    return entry.level in ("warning", "error")


def _moment(entry: EntryView) -> datetime:
    return datetime.fromisoformat(entry.at).astimezone()


def _line(entry: EntryView, source: int, kind: int) -> str:
    at, mark = _moment(entry), "!" if _wrong(entry) else " "
    head = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} {mark} {entry.source:<{source}}  {entry.kind:<{kind}}"
    return f"{head}  {_paint(_printable(entry.sentence), COLOURS.get(entry.level, ''))}"


def _printable(words: str) -> str:
    """One line, and nothing in it that a terminal would obey: log lines come from many hands."""
    return "".join(letter for letter in " ".join(words.split()) if letter.isprintable())


CODES = {"red": "31", "yellow": "33", "bold": "1", "dim": "2"}


def _paint(words: str, colour: str) -> str:
    """In colour on a terminal, plain in a pipe."""
    return f"\033[{CODES[colour]}m{words}\033[0m" if colour and sys.stdout.isatty() else words
