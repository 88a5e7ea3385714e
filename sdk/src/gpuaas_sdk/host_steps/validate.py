"""Validation of words that reach a shell on a host. Each kind has a pattern for the whole word (`$` would allow a
trailing newline).

Apps check their own words with `match`, so that every bad value raises the same `BadWord`.
"""

from __future__ import annotations

import re


class BadWord(ValueError):
    """A value that must not reach a configuration file, a command or a shell."""

    def __init__(self, what: str, value: object, expected: str) -> None:
        super().__init__(f"{what} is {value!r}; it must be {expected}.")
        self.what = what


Pattern = tuple[re.Pattern[str], str]  # and a description of the words it accepts
PATTERNS: dict[str, Pattern] = {
    "id": (re.compile(r"[a-z]{2,8}_[a-z0-9]{8,40}"), "a platform id"),
    "step": (re.compile(r"[a-z][a-z_]{1,40}"), "a step name"),
    "unit": (re.compile(r"[a-z][a-z0-9_-]{1,40}"), "a service name"),
    "app": (re.compile(r"[a-z][a-z0-9-]{1,40}"), "an app name"),
    "path": (re.compile(r"/[A-Za-z0-9._/*-]{0,200}"), "an absolute path"),
}


def match(what: str, value: object, pattern: Pattern) -> str:
    """Return the value if the pattern matches it, otherwise raise BadWord."""
    accepted, expected = pattern
    if not isinstance(value, str) or not accepted.fullmatch(value) or ".." in value:
        raise BadWord(what, value, expected)
    return value


def word(what: str, value: object) -> str:
    return match(what, value, PATTERNS[what])


def whole(what: str, value: object, low: int, high: int) -> int:
    """Return the value if it is a whole number in the range, otherwise raise BadWord. Booleans are rejected."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadWord(what, value, f"a whole number from {low} to {high}")
    return value
