"""Turns JSON Schema validation errors into plain sentences. Called by manifest.py.

A form may provide its own message (`x-message`); keywords without a sentence here use the validator's message.
"""

from collections.abc import Callable
from typing import Any

from jsonschema.exceptions import ValidationError

from ..kit.json_schema import message

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def describe(error: ValidationError) -> str:
    rules: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    own = rules.get("x-message")
    if own and error.absolute_path:
        return str(own).replace("{name}", str(error.absolute_path[-1]))
    sentence = SENTENCES.get(str(error.validator))
    return sentence(error, error.validator_value, rules) if sentence else message(error)


def _type(_error: ValidationError, wanted: Any, _rules: dict[str, Any]) -> str:
    kinds = wanted if isinstance(wanted, list) else [wanted]
    return f"It must be {' or '.join(TYPES.get(kind, str(kind)) for kind in kinds)}."


def _unknown(error: ValidationError, allowed: Any, rules: dict[str, Any]) -> str:
    known = rules.get("properties", {})
    if allowed is not False or "patternProperties" in rules or not isinstance(error.instance, dict):
        return message(error)
    unknown = ", ".join(repr(name) for name in error.instance if name not in known)
    return f"Unknown: {unknown}. Known: {', '.join(sorted(known)) or 'none'}."


def _missing(error: ValidationError, names: Any, _rules: dict[str, Any]) -> str:
    """The validator reports each missing name as an error of its own."""
    name = next((name for name in names if error.message.startswith(repr(name))), None)
    return f"{name!r} is missing." if name else message(error)


def _bound(sentence: str) -> Callable[[ValidationError, Any, dict[str, Any]], str]:
    return lambda _error, bound, _rules: sentence.format(bound)


SENTENCES: dict[str, Callable[[ValidationError, Any, dict[str, Any]], str]] = {
    "type": _type,
    "additionalProperties": _unknown,
    "required": _missing,
    "enum": lambda _error, choices, _rules: f"It must be one of: {', '.join(map(str, choices))}.",
    "minimum": _bound("It must be at least {}."),
    "maximum": _bound("It must be at most {}."),
    "minLength": _bound("It must have at least {} characters."),
    "maxLength": _bound("It may have at most {} characters."),
    "minItems": _bound("It must have at least {} items."),
    "maxItems": _bound("It may have at most {} items."),
}
