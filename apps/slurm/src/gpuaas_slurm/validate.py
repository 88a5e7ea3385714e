"""Validation of every string that reaches slurm.conf, the accounting database or a shell.

A newline in a partition name would add a line to slurm.conf; a quote would leave a shell word. So each kind of word has
one pattern, matched whole (`fullmatch`: `$` would let a trailing newline through). Called by plan, render, hosts.
"""

import ipaddress
import re
from typing import Any

from gpuaas_sdk.host_steps import validate
from gpuaas_sdk.host_steps.validate import BadWord, Pattern, whole

__all__ = ["BadWord", "address", "known_keys", "plain", "rows", "slug", "text", "whole", "word"]


PATTERNS: dict[str, Pattern] = {
    **validate.PATTERNS,
    "cluster_name": (
        re.compile(r"[a-z][a-z0-9_-]{0,38}[a-z0-9]"),
        "2 to 40 lower-case letters, digits, '-' or '_', starting with a letter",
    ),
    "partition": (re.compile(r"[a-z][a-z0-9_]{0,30}"), "up to 31 lower-case letters, digits or '_'"),
    "gpu_type": (re.compile(r"[a-z][a-z0-9_]{0,30}"), "up to 31 lower-case letters, digits or '_'"),
    "account": (re.compile(r"[a-z][a-z0-9_-]{0,39}"), "up to 40 lower-case letters, digits, '-' or '_'"),
    "user": (re.compile(r"[a-z][a-z0-9_-]{0,30}"), "up to 31 lower-case letters, digits, '-' or '_'"),
    "node": (re.compile(r"[a-z][a-z0-9-]{0,61}[a-z0-9]"), "a host-name-like word of lower-case letters and digits"),
    "hostname": (
        re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9-]{1,63})*"),
        "a host name",
    ),
    "device": (re.compile(r"/dev/[A-Za-z0-9][A-Za-z0-9_/-]{0,60}"), "a device file below /dev"),
    "feature": (re.compile(r"[a-z][a-z0-9_]{0,30}(,[a-z][a-z0-9_]{0,30}){0,7}"), "GPU types with commas between them"),
    "sha256": (re.compile(r"[0-9a-f]{64}"), "a SHA-256 digest in hex"),
}
RESERVED = {"partition": {"all", "default"}, "user": {"root"}, "account": {"root"}}


def word(what: str, value: object) -> str:
    """Return the value if it is a valid word of that kind, otherwise raise BadWord."""
    matched = validate.match(what, value, PATTERNS[what])
    if matched in RESERVED.get(what, ()):
        raise BadWord(what, value, "another word; this one is reserved by Slurm")
    return matched


def plain(text: str) -> str:
    """Reduce a person's text to what Slurm can store between single quotes: letters, digits and a few marks."""
    return " ".join(re.sub(r"[^A-Za-z0-9 .,:_/()-]+", " ", text).split())


def address(value: object) -> str:
    """Return the value if it is an IP address or a host name, otherwise raise BadWord."""
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        return word("hostname", value)


def known_keys(inputs: dict[str, Any], allowed: set[str]) -> None:
    """Raise BadWord for an unknown input. The manifest forbids them too (`additionalProperties: false`)."""
    for key in inputs:
        if key not in allowed:
            raise BadWord("inputs", key, f"one of {', '.join(sorted(allowed))}")


def rows(what: str, value: object, keys: set[str], most: int) -> list[dict[str, Any]]:
    """Return the value if it is a list of at most `most` objects with known keys, otherwise raise BadWord."""
    if not isinstance(value, list) or len(value) > most or not all(isinstance(one, dict) for one in value):
        raise BadWord(what, value, f"a list of at most {most} objects")
    for one in value:
        known_keys(one, keys)
    return value


def text(what: str, value: object, most: int) -> str:
    """Return the value if it is text of at most `most` characters, otherwise raise BadWord. The text is only compared,
    never written to a file."""
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise BadWord(what, value, f"1 to {most} characters")
    return value


def slug(text: str, fallback: str) -> str:
    """Return a valid word for a free name ('Team A!' becomes 'team-a'), or `fallback` if no valid word is left."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:38].strip("-")
    return made if len(made) > 1 and made[0].isalpha() else fallback
