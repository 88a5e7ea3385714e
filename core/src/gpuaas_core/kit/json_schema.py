"""JSON Schema validation with ECMA-262 patterns, as the JSON Schema specification requires.

Python's `re` differs in ways that accept values which a browser rejects: `$` also matches before a final newline, `\\d`
and `\\w` match digits and letters of every script, `.` matches a carriage return. So a schema is translated before
Python's validator uses it, wherever the core validates against a schema of a manifest or of a task kind.
"""

import copy
import re
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry

from .json_types import Json, JsonValue, is_array, is_object

References: TypeAlias = Registry[Any]  # of schemas: the library gives its documents no type
_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = r"\t\n\v\f\r \u00a0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_ALONE = {"s": f"[{_SPACES}]", "S": f"[^{_SPACES}]"}
_NAMES = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})  # their keys are names, not keywords
_VALUES = frozenset({"const", "enum", "default", "examples"})  # their contents are data
_WRITTEN, _ALL_WRITTEN = "x-pattern-as-written", "x-patterns-as-written"
_TOKEN = re.compile(r"\\k<(?P<again>\w+)>|\(\?<(?P<group>[A-Za-z_]\w*)>|\\(?P<escape>.)|(?P<other>.)", re.DOTALL)


class PatternInvalid(ValueError):
    """A pattern cannot be compiled; the exception's text is the reason."""


class Validator(Protocol):
    def iter_errors(self, instance: JsonValue) -> Iterable[ValidationError]: ...


def validator(schema: Json, registry: References | None = None) -> Validator:
    """Build a validator for the schema. With `registry`, references are resolved only in this registry."""
    if registry is None:
        return Draft202012Validator(translated(schema))
    return Draft202012Validator(translated(schema), registry=registry)


def message(error: ValidationError) -> str:
    """Return the validator's error message, but with the original pattern instead of its translation to Python."""
    rules: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "pattern" and _WRITTEN in rules:
        return f"{error.instance!r} does not match {rules[_WRITTEN]!r}"
    if error.validator == "additionalProperties" and _ALL_WRITTEN in rules:
        return f"The name is not declared and does not match {' or '.join(map(repr, rules[_ALL_WRITTEN]))}"
    return error.message


def translated(schema: Json) -> dict[str, JsonValue]:
    """Copy the schema with its patterns translated from ECMA-262 to Python.

    References keep working, except those whose path contains a translated pattern.
    """
    result: dict[str, JsonValue] = {}
    for keyword, value in schema.items():
        if keyword == "pattern" and isinstance(value, str):
            result[keyword], result[_WRITTEN] = to_python(value), value
        elif keyword == "patternProperties" and is_object(value):
            result[keyword] = {to_python(pattern): _translated(inside) for pattern, inside in value.items()}
            result[_ALL_WRITTEN] = [*value]
        elif keyword in _NAMES and is_object(value):
            result[keyword] = {name: _translated(inside) for name, inside in value.items()}
        else:
            result[keyword] = copy.deepcopy(value) if keyword in _VALUES else _translated(value)
    return result


def _translated(value: JsonValue) -> JsonValue:
    if is_array(value):
        return [_translated(item) for item in value]
    return translated(value) if is_object(value) else value


def pattern_errors(schema: Json) -> list[str]:
    """Return one sentence for each pattern of the schema that cannot be compiled; an empty list if all can."""
    result: list[str] = []
    for pattern in sorted(set(_patterns(schema))):
        try:
            to_python(pattern)
        except PatternInvalid as error:
            result.append(str(error))
    return result


def to_python(pattern: str) -> str:
    """Translate an ECMA-262 pattern into an equivalent expression for Python's `re`. Raise PatternInvalid if it cannot
    be compiled."""
    written = f"(?a:{''.join(_pieces(pattern))})"
    try:
        re.compile(written)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternInvalid(f"the pattern {pattern[:100]!r} cannot be compiled: {error}") from error
    return written


def _pieces(pattern: str) -> list[str]:
    pieces: list[str] = []
    inside = False  # of a character class
    at = 0
    while at < len(pattern):
        if not inside and (empty := re.match(r"\[\^?\]", pattern[at:])):  # matches nothing, or any character
            pieces.append("(?!)" if empty[0] == "[]" else r"[\s\S]")
            at += len(empty[0])
            continue
        token = _TOKEN.match(pattern, at)
        if token is None:  # it matches any one character, so this is the end
            break
        piece = _in_class(token) if inside else _outside(token)
        inside = token["other"] != "]" if inside else token["other"] == "["
        pieces.append(piece)
        at = token.end()
    return pieces


def _outside(token: re.Match[str]) -> str:
    if token["other"]:
        return {"$": r"\Z", ".": f"[^{_LINE_ENDS}]"}.get(token["other"], token[0])
    if token["again"]:
        return f"(?P={token['again']})"
    return f"(?P<{token['group']}>" if token["group"] else _ALONE.get(token["escape"], token[0])


def _in_class(token: re.Match[str]) -> str:
    """Translate a token inside a character class. `\\S` keeps Python's ASCII meaning there, because Python cannot
    subtract characters within a class."""
    if token["escape"] == "s":
        return _SPACES
    return r"\[" if token[0] == "[" else token[0]


def _patterns(schema: JsonValue) -> list[str]:
    if is_array(schema):
        return [pattern for item in schema for pattern in _patterns(item)]
    if not is_object(schema):
        return []
    result: list[str] = []
    for keyword, value in schema.items():
        if keyword == "pattern" and isinstance(value, str):
            result.append(value)
        elif keyword == "patternProperties" and is_object(value):
            result += [*value, *_patterns([*value.values()])]
        elif keyword in _NAMES and is_object(value):
            result += _patterns([*value.values()])
        elif keyword not in _VALUES:
            result += _patterns(value)
    return result
