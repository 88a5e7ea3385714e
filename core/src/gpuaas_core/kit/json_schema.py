"""JSON Schema as its specification says: a pattern is an ECMA-262 expression, whichever language checks it.

Python's `re` differs in ways that let values pass which a browser refuses: `$` also matches before a last newline,
`\\d` and `\\w` take digits and letters of every script, `.` takes a carriage return. So a schema is translated before
Python's validator sees it, wherever the core checks a value against a schema of a manifest or of a kind of task.
"""

import copy
import re
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

_LINE_ENDS = r"\n\r\u2028\u2029"
_SPACES = r"\t\n\v\f\r \u00a0\ufeff\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_ALONE = {"s": f"[{_SPACES}]", "S": f"[^{_SPACES}]"}
_NAMES = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})  # their keys are names, not keywords
_VALUES = frozenset({"const", "enum", "default", "examples"})  # what lies in them is data
_WRITTEN, _ALL_WRITTEN = "x-pattern-as-written", "x-patterns-as-written"
_TOKEN = re.compile(r"\\k<(?P<again>\w+)>|\(\?<(?P<group>[A-Za-z_]\w*)>|\\(?P<escape>.)|(?P<other>.)", re.DOTALL)


class PatternInvalid(ValueError):
    """The pattern cannot be compiled; `str()` says where."""


def validator(schema: dict[str, Any], **more: Any) -> Draft202012Validator:
    return Draft202012Validator(translated(schema), **more)


def message(error: ValidationError) -> str:
    """In the validator's words, with the pattern as its author wrote it."""
    rules: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    if error.validator == "pattern" and _WRITTEN in rules:
        return f"{error.instance!r} does not match {rules[_WRITTEN]!r}"
    if error.validator == "additionalProperties" and _ALL_WRITTEN in rules:
        return f"A name here must be one of those known or match {' or '.join(map(repr, rules[_ALL_WRITTEN]))}"
    return error.message


def translated(schema: Any) -> Any:
    """The same schema with patterns that Python reads as ECMA-262 means them. A reference finds its target again,
    unless its path leads through a pattern that had to change."""
    if isinstance(schema, list):
        return [translated(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "pattern" and isinstance(value, str):
            found[keyword], found[_WRITTEN] = to_python(value), value
        elif keyword == "patternProperties" and isinstance(value, dict):
            found[keyword] = {to_python(pattern): translated(inside) for pattern, inside in value.items()}
            found[_ALL_WRITTEN] = [*value]
        elif keyword in _NAMES and isinstance(value, dict):
            found[keyword] = {name: translated(inside) for name, inside in value.items()}
        else:
            found[keyword] = copy.deepcopy(value) if keyword in _VALUES else translated(value)
    return found


def pattern_errors(schema: Any) -> list[str]:
    """One sentence for each pattern of the schema that cannot be compiled."""
    found = []
    for pattern in sorted(set(_patterns(schema))):
        try:
            to_python(pattern)
        except PatternInvalid as error:
            found.append(str(error))
    return found


def to_python(pattern: str) -> str:
    """The expression of Python's `re` that matches what ECMA-262 says this one matches."""
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
        if not inside and (empty := re.match(r"\[\^?\]", pattern[at:])):  # no character at all, or any
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
    """`\\S` stays ASCII here: Python cannot take a set away from within a class."""
    if token["escape"] == "s":
        return _SPACES
    return r"\[" if token[0] == "[" else token[0]


def _patterns(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [pattern for one in schema for pattern in _patterns(one)]
    if not isinstance(schema, dict):
        return []
    found: list[str] = []
    for keyword, value in schema.items():
        if keyword == "pattern" and isinstance(value, str):
            found.append(value)
        elif keyword == "patternProperties" and isinstance(value, dict):
            found += [*value, *_patterns([*value.values()])]
        elif keyword in _NAMES and isinstance(value, dict):
            found += _patterns([*value.values()])
        elif keyword not in _VALUES:
            found += _patterns(value)
    return found
