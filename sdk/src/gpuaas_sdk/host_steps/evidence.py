"""The evidence of a failed operation: the failed step, its output, the host's services, and the steps before it.

outcomes.py builds it when an operation fails. It is read through the API, so it is small and contains no secrets:
values that look like secrets are removed, also from service logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from ..client.request import JsonObject

if TYPE_CHECKING:
    from .journal import StepRow

MOST_CHARS = 16_000  # of the whole, as JSON
LINE_CHARS = 300
BLOT = "[removed]"
SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)", re.DOTALL),
    re.compile(r"(?i)((?:pass(?:word|wd|phrase)?|secret|token|api_?key)[\"']?\s*[=:]\s*)[^\s,;]+"),
    re.compile(r"(?i)(identified by\s+)\S+"),
    re.compile(r"(?i)(bearer\s+)\S+"),
    re.compile(
        r"()\b(?=[A-Za-z0-9+/]*[0-9])(?=[A-Za-z0-9+/]*[A-Za-z])[A-Za-z0-9+/]{40,}={0,2}"
    ),  # keys in base64 or hex
)


def bundle(detail: JsonObject, rows: Iterable[StepRow], names: Mapping[str, str]) -> dict[str, object]:
    """Build the evidence from the detail of a failure and the journal rows of its operation. `names` maps allocations
    to host names."""
    steps = [
        {
            "step": row["step"],
            "host": names.get(row["allocation_id"], row["allocation_id"]),
            "attempt": row["attempt"],
            "phase": row["phase"],
            "ms": round((row["finished"] - row["started"]) * 1000) if row["finished"] else None,
        }
        for row in list(rows)[-12:]
    ]
    return bounded({**detail, **({"steps": steps} if steps else {})})


def bounded(value: JsonObject, most: int = MOST_CHARS) -> dict[str, object]:
    """Remove secrets, then cut the beginnings of the longest texts and lists until the JSON has at most `most`
    characters. If it is still too long, return only a note."""
    small = {name: _scrubbed(one) for name, one in value.items()}
    keep = 2_000
    while len(json.dumps(small)) > most and keep > 50:
        small = {name: _shortened(one, keep) for name, one in small.items()}
        keep //= 2
    return (
        small
        if len(json.dumps(small)) <= most
        else {"note": "The evidence is too large to show. See the controller's journal."}
    )


def scrub(text: str) -> str:
    for pattern in SECRETS:
        text = pattern.sub(lambda found: (found.group(1) if _keeps(found) else "") + BLOT, text)
    return text


def _keeps(found: re.Match[str]) -> bool:
    """Return True if the word before the secret stays readable. Return False for a private key block, which is removed
    as a whole."""
    return not found.group(0).startswith("-----BEGIN")


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {str(name): _scrubbed(one) for name, one in cast(dict[object, object], value).items()}
    if isinstance(value, list | tuple):
        items = cast(list[object], value)
        return [_scrubbed(one[:LINE_CHARS] if isinstance(one, str) else one) for one in items]
    return value


def _shortened(value: object, keep: int) -> object:
    if isinstance(value, str):
        return value if len(value) <= keep else "…" + value[-keep:]
    if isinstance(value, dict):
        return {name: _shortened(one, keep) for name, one in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [_shortened(one, keep) for one in cast(list[object], value)[-max(1, keep // 100) :]]
    return value
