"""Wire formats: strict inputs (unknown fields are rejected), plain outputs, cursor pages."""

import base64
import json
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, StringConstraints

from .clock import rfc3339
from .problems import MalformedBody

T = TypeVar("T")
MOST_LEVELS = 60
TOO_DEEP = f"The body is nested more than {MOST_LEVELS} levels deep."
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)

# Patterns of inputs, and the sentence that errors show instead of the regular expression.
PATTERNS: dict[str, str] = {}


def describe_pattern(pattern: str, sentence: str) -> str:
    """Register the sentence that errors show for this pattern; returns the pattern."""
    PATTERNS[pattern] = sentence
    return pattern


_SLUG = describe_pattern(
    r"^[a-z][a-z0-9-]{1,38}[a-z0-9]$",
    "3 to 40 lower-case letters, digits and dashes, starting with a letter and not ending with a dash",
)
_TITLE = describe_pattern(r"^[^\x00-\x1f\x7f]+$", "1 to 120 characters, none of them a control character")
Slug = Annotated[str, StringConstraints(pattern=_SLUG)]
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


class ActionView(View):
    """Whether an action is possible now, and why not."""

    action: str
    allowed: bool
    reason: str


class Page(View, Generic[T]):
    items: list[T]
    next_cursor: str | None = None
    event_sequence: Annotated[int | None, Field(description="the tenant's event sequence this list was read at")] = None


def read_json(body: bytes) -> Any:
    """JSON that can be stored and repeated: no NaN, no lone surrogates, no duplicate names, bounded nesting."""
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


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise MalformedBody(f"An object of the body has the name {twice[:40]!r} twice.")
    return members


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(item, levels - 1) for item in inside)


def counted(number: int, noun: str) -> str:
    """`1 machine`, `3 machines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def canonical(value: Any) -> str:
    return _CANONICAL.encode(value)


def encode_cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
