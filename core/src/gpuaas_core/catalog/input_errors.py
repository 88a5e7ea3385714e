"""Turns JSON Schema validation errors into plain sentences. Called by manifest.py.

A schema may provide its own message (`x-message`). Errors of keywords without a sentence here keep the validator's
message.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from jsonschema.exceptions import ValidationError

from ..kit.json_schema import message
from ..kit.json_types import Json, JsonValue, is_array, is_object

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}

# Of the error, the keyword's value, and the schema it is part of.
Sentence: TypeAlias = Callable[[ValidationError, JsonValue, Json], str]


def describe(error: ValidationError) -> str:
    schema: object = error.schema
    rules: Json = schema if is_object(schema) else {}
    own = rules.get("x-message")
    if own and error.absolute_path:
        return str(own).replace("{name}", str(error.absolute_path[-1]))
    sentence = SENTENCES.get(str(error.validator))
    return sentence(error, rules.get(str(error.validator)), rules) if sentence else message(error)


def _type(_error: ValidationError, wanted: JsonValue, _rules: Json) -> str:
    kinds = [str(kind) for kind in wanted] if is_array(wanted) else [str(wanted)]
    return f"It must be {' or '.join(TYPES.get(kind, kind) for kind in kinds)}."


def _unknown(error: ValidationError, allowed: JsonValue, rules: Json) -> str:
    properties, instance = rules.get("properties"), error.instance
    known: Json = properties if is_object(properties) else {}
    if allowed is not False or "patternProperties" in rules or not is_object(instance):
        return message(error)
    unknown = ", ".join(repr(name) for name in instance if name not in known)
    return f"Unknown: {unknown}. Known: {', '.join(sorted(known)) or 'none'}."


def _missing(error: ValidationError, names: JsonValue, _rules: Json) -> str:
    """Describe a missing input in one sentence. The validator reports each missing name as a separate error."""
    name = next((name for name in _each(names) if error.message.startswith(repr(name))), None)
    return f"{name!r} is missing." if name else message(error)


def _each(value: JsonValue) -> Sequence[JsonValue]:
    return value if is_array(value) else ()


def _bound(sentence: str) -> Sentence:
    return lambda _error, bound, _rules: sentence.format(bound)


SENTENCES: dict[str, Sentence] = {
    "type": _type,
    "additionalProperties": _unknown,
    "required": _missing,
    "enum": lambda _error, choices, _rules: f"It must be one of: {', '.join(map(str, _each(choices)))}.",
    "minimum": _bound("It must be at least {}."),
    "maximum": _bound("It must be at most {}."),
    "minLength": _bound("It must have at least {} characters."),
    "maxLength": _bound("It may have at most {} characters."),
    "minItems": _bound("It must have at least {} items."),
    "maxItems": _bound("It may have at most {} items."),
}
