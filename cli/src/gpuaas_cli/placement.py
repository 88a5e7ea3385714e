"""Reads what a person typed for `instance deploy`: where each component goes, and the inputs for the app."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import failures
from .failures import CliError

if TYPE_CHECKING:
    from .session import Session


def read_places(at: Session, controller: str | None, places: list[str]) -> dict[str, list[str]]:
    """{"controller": ["alloc_…"]}; names are looked up only if there are any."""
    named = [f"controller={controller}", *places] if controller else places
    if not named:
        way_out = "Add --controller ALLOCATION, or --place component=allocation. See: gpuaas allocation list"
        raise CliError("Where should it run?", way_out, failures.USAGE)
    wanted: dict[str, list[str]] = {}
    for text in named:
        component, separator, names = text.partition("=")
        if not separator or not component or not names:
            way_out = "Write --place component=allocation[,allocation]."
            raise CliError(f"{text!r} is not a place.", way_out, failures.USAGE)
        wanted.setdefault(component, []).extend(name for name in names.split(",") if name)
    only_ids = all(name.startswith("alloc_") for names in wanted.values() for name in names)
    known = [] if only_ids else at.allocations()
    return {component: [at.allocation_id(name, known) for name in names] for component, names in wanted.items()}


def read_inputs(pairs: list[str], file: Path | None) -> dict[str, Any]:
    """The file first, single inputs on top of it."""
    inputs = read_object(file) if file else {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise CliError(f"{pair!r} is not an input.", "Write --input key=value.", failures.USAGE)
        inputs[key] = _value(value)
    return inputs


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object in a file, or on standard input."""
    try:
        read = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text())
    except (OSError, ValueError) as error:
        raise CliError(f"{file} cannot be read as JSON: {error}", "Give a JSON object.", failures.USAGE) from error
    if not isinstance(read, dict):
        raise CliError(f"{file} does not hold a JSON object.", 'Write it like {"key": 1}.', failures.USAGE)
    return read


def _value(text: str) -> Any:
    """Numbers, true, false, null, lists and objects as JSON; everything else as the text it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
