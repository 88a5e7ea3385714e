"""`gpuaas triage ID|NAME`: the cause of a failure, found by correlation id, operation or instance."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

from .. import failures, show
from ..failures import CliError
from ..options import Looking
from ..session import Session, session

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import EntryView, TriageView

COLOURS = {"error": "red", "warning": "yellow", "debug": "dim"}


def triage(what: str, /, *, common: Looking = Looking()) -> None:
    """Show everything recorded under a correlation id, in order, and what to do.

    Every error, operation and event contains its correlation id. The output contains what your permissions allow.

    Example: gpuaas triage cor-5f2c0a7e91d34b
    Example: gpuaas triage train
    Example: gpuaas triage op_01hx… -o json

    Parameters
    ----------
    what
        A correlation id, the id of an operation, or an instance's name for its newest operation.
    """
    with session(common) as at:
        found = _find(at, what)
    if common.json:
        return show.as_json(found)
    return _print(found)


def _find(at: Session, what: str) -> TriageView:
    """Read the triage of a correlation id, operation or instance. Any text can be a correlation id, so that is tried
    before a name."""
    from gpuaas_sdk.client.errors import NotFound

    if what.startswith(("op_", "inst_")):
        return at.client.read_triage(at.operation(what).correlation_id)
    try:
        return at.client.read_triage(what)
    except NotFound:
        return at.client.read_triage(_operation_of(at, what))


def _operation_of(at: Session, instance: str) -> str:
    try:
        return at.operation(instance).correlation_id
    except CliError:
        way_out = "Give a correlation id, the id of an operation, or an instance's name with its --project."
        sentence = f"Nothing is recorded under {instance}, or you may not see it."
        raise CliError(sentence, way_out, failures.NOT_FOUND) from None


def _print(found: TriageView) -> None:
    verdict = found.verdict
    rows = [("What", verdict.what), ("Why", verdict.why + (f" ({verdict.code})" if verdict.code else ""))]
    rows += [("First symptom", sign)] if (sign := _first_sign(found)) else []
    rows += [("What you can do", verdict.way_out)] if verdict.way_out else []
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        if words:
            print(_paint(f"{name}:".ljust(width + 1), "bold") + f" {_printable(words)}")
    print()
    if found.truncated:
        print("(Older log lines are omitted.)")
    if found.timeline:
        print(_paint(f"{_moment(found.timeline[0]):%A %Y-%m-%d, %Z}. ! marks warnings and errors.", "dim"))
    widths = [max((len(getattr(one, name)) for one in found.timeline), default=0) for name in ("source", "kind")]
    for entry in found.timeline:
        print(_line(entry, *widths))


def _first_sign(found: TriageView) -> str:
    """Return the first warning or error outside the core: often closer to the cause than the verdict."""
    wrong = (one.sentence for one in found.timeline if one.source != "core" and one.kind != "span" and _wrong(one))
    sign = next(wrong, "")  # a span only shows that something inside it failed
    return "" if found.verdict.why in sign else sign


def _wrong(entry: EntryView) -> bool:
    return entry.level in ("warning", "error")


def _moment(entry: EntryView) -> datetime:
    return datetime.fromisoformat(entry.at).astimezone()


def _line(entry: EntryView, source: int, kind: int) -> str:
    at, mark = _moment(entry), "!" if _wrong(entry) else " "
    head = f"{at:%H:%M:%S}.{at.microsecond // 1000:03d} {mark} {entry.source:<{source}}  {entry.kind:<{kind}}"
    return f"{head}  {_paint(_printable(entry.sentence), COLOURS.get(entry.level, ''))}"


def _printable(words: str) -> str:
    """Return one line without control characters, since log lines come from apps and nodes."""
    return "".join(letter for letter in " ".join(words.split()) if letter.isprintable())


CODES = {"red": "31", "yellow": "33", "bold": "1", "dim": "2"}


def _paint(words: str, colour: str) -> str:
    """Return the text in colour on a terminal, plain in a pipe."""
    return f"\033[{CODES[colour]}m{words}\033[0m" if colour and sys.stdout.isatty() else words
