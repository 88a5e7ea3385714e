"""Base classes of wire models: strict inputs (unknown fields are rejected), plain outputs, cursor pages."""

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints

from .clock import rfc3339
from .json_types import JsonValue, is_array, is_object
from .problems import MalformedBody

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
MOST_LEVELS = 60
TOO_DEEP = f"The body is nested more than {MOST_LEVELS} levels deep."
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)

# Patterns of inputs, and the sentence that errors show instead of the regular expression.
PATTERNS: dict[str, str] = {}


def describe_pattern(pattern: str, sentence: str) -> str:
    """Register the sentence that error messages show instead of this pattern, and return the pattern."""
    PATTERNS[pattern] = sentence
    return pattern


_SLUG = describe_pattern(
    r"^[a-z][a-z0-9-]{1,38}[a-z0-9]$",
    "3 to 40 lower-case letters, digits and dashes, starting with a letter and not ending with a dash",
)
_KEY = describe_pattern(
    r"^[a-z][a-z0-9_]{0,39}$", "1 to 40 lower-case letters, digits and underscores, starting with a letter"
)
_TITLE = describe_pattern(r"^[^\x00-\x1f\x7f]+$", "1 to 120 characters, none of them a control character")
Slug = Annotated[str, StringConstraints(pattern=_SLUG)]
Key = Annotated[str, StringConstraints(pattern=_KEY)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=_TITLE)]
Whole = Annotated[int, Strict()]  # neither true nor "7" is accepted
YesNo = Annotated[bool, Strict()]
Id = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Moment = Annotated[str, BeforeValidator(lambda value: rfc3339(value) if isinstance(value, int) else value)]
# Controllers report output of hosts; databases cannot store a NUL in text, and a NUL must not lose the report.
Keepable = AfterValidator(lambda value: value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
Sentence = Annotated[str, StringConstraints(max_length=2000), Keepable]


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


def view_of(model: type[M], values: Mapping[str, object]) -> M:
    """Build a view without validation. The values must come from columns of the core, with a value for every field."""
    view, names = model.__new__(model), model.model_fields
    object.__setattr__(view, "__dict__", {name: values[name] for name in names})
    object.__setattr__(view, "__pydantic_fields_set__", set(names))
    object.__setattr__(view, "__pydantic_extra__", None)
    object.__setattr__(view, "__pydantic_private__", None)
    return view


class ActionView(View):
    """Whether an action is possible now and, if not, the reason."""

    action: str
    allowed: bool
    reason: str


class Page(View, Generic[T]):
    items: list[T]
    next_cursor: str | None = None
    event_sequence: Annotated[int | None, Field(description="the tenant's event sequence this list was read at")] = None


def read_json(body: bytes) -> JsonValue:
    """Parse a JSON body; None if it is empty. Raise MalformedBody for invalid JSON, NaN, lone surrogates, duplicate
    names, or nesting beyond `MOST_LEVELS`."""
    if not body:
        return None
    try:
        value = json.loads(body, object_pairs_hook=_refuse_doubles)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise MalformedBody(f"The body is not valid JSON at line {error.lineno}, column {error.colno}.") from error
    except RecursionError as error:
        raise MalformedBody(TOO_DEEP) from error
    except ValueError as error:
        raise MalformedBody(
            "The body is not interoperable JSON: it has NaN, Infinity, a number with thousands of digits, a lone"
            " surrogate, or is not UTF-8 (RFC 8259, sections 6 and 8.1)."
        ) from error
    if _deeper(value, MOST_LEVELS):
        raise MalformedBody(TOO_DEEP)
    return value


def _refuse_doubles(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise MalformedBody(f"An object of the body has the name {twice[:40]!r} twice.")
    return members


def _deeper(value: JsonValue, levels: int) -> bool:
    if is_object(value):
        return levels == 0 or any(_deeper(item, levels - 1) for item in value.values())
    return is_array(value) and (levels == 0 or any(_deeper(item, levels - 1) for item in value))


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: `1 machine`, `3 machines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def canonical(value: object) -> str:
    return _CANONICAL.encode(value)


def encode_cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
