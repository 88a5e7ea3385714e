"""Validates a value against the subset of JSON Schema that `kinds.json` uses. If a schema has an unknown keyword, no
value is valid.

A host has no JSON Schema library, and a check that skips unknown keywords would be unsafe.
"""

import json
import re
from typing import Any

TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}


class Misfit(Exception):
    """A value does not match its schema. The message names the part of the value and the schema keyword."""


def load(text: str) -> Any:
    """Parse JSON strictly: a duplicate name in an object or a NaN raises ValueError."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)


def check(schema: dict[str, Any], value: Any, where: str = "it") -> None:
    for word, rule in schema.items():
        if word not in WORDS:
            raise Misfit(f"{where}: the schema says {word!r}, which this agent does not know")
        if not WORDS[word](schema, rule, value, where):
            raise Misfit(f"{where} does not fit {word!r}")


def _type(_: Any, rule: str, value: Any, where: str) -> bool:
    return isinstance(value, TYPES[rule]) and not isinstance(value, bool)


def _properties(schema: Any, rule: dict[str, Any], value: Any, where: str) -> bool:
    for name, inner in rule.items():
        if name in value:
            check(inner, value[name], f"{where}.{name}")
    return True


def _additional(schema: Any, rule: Any, value: Any, where: str) -> bool:
    return rule is False and value.keys() <= schema["properties"].keys()


def _items(_: Any, rule: dict[str, Any], value: Any, where: str) -> bool:
    for number, one in enumerate(value):
        check(rule, one, f"{where}[{number}]")
    return True


def _any_of(_: Any, rule: list[dict[str, Any]], value: Any, where: str) -> bool:
    def fits(schema: dict[str, Any]) -> bool:
        try:
            check(schema, value, where)
        except Misfit:
            return False
        return True

    return any(fits(schema) for schema in rule)


# `type` is the first word of every schema that has one, so the others may rely on it.
WORDS: dict[str, Any] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "required": lambda _s, rule, value, _w: all(name in value for name in rule),
    "enum": lambda _s, rule, value, _w: value in rule,
    "pattern": lambda _s, rule, value, _w: re.fullmatch(rule, value) is not None,
    "maxLength": lambda _s, rule, value, _w: len(value) <= rule,
    "minimum": lambda _s, rule, value, _w: value >= rule,
    "maximum": lambda _s, rule, value, _w: value <= rule,
    "minItems": lambda _s, rule, value, _w: len(value) >= rule,
    "maxItems": lambda _s, rule, value, _w: len(value) <= rule,
}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name twice")
    return members


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")
