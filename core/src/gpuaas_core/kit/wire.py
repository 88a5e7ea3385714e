"""What goes over the wire: strict inputs (unknown fields refused), plain outputs, cursor pages."""

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

# Patterns a person can meet, and the sentence that stands for each: nobody should have to read a regular expression.
PATTERNS: dict[str, str] = {}


def said(pattern: str, sentence: str) -> str:
    """The pattern, once its sentence is known: what does not fit is refused in those words."""
    PATTERNS[pattern] = sentence
    return pattern


_SLUG = said(
    r"^[a-z][a-z0-9-]{1,38}[a-z0-9]$",
    "3 to 40 lower-case letters, digits and dashes, starting with a letter and not ending with a dash",
)
_TITLE = said(r"^[^\x00-\x1f\x7f]+$", "1 to 120 characters, none of them a control character")
Slug = Annotated[str, StringConstraints(pattern=_SLUG)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=_TITLE)]
Whole = Annotated[int, Strict()]  # true is no number, "7" neither
YesNo = Annotated[bool, Strict()]
Id = Annotated[str, StringConstraints(min_length=1, max_length=40)]
Moment = Annotated[str, BeforeValidator(lambda value: rfc3339(value) if isinstance(value, int) else value)]
# Controllers report what machines said; a NUL in it is no reason to lose the report, and no store keeps one in text.
Keepable = AfterValidator(lambda value: value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
Sentence = Annotated[str, StringConstraints(max_length=2000), Keepable]


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class ActionView(View):
    """What may be done with a thing now, and why not."""

    action: str
    allowed: bool
    reason: str


class Page(View, Generic[T]):
    items: list[T]
    next_cursor: str | None = None
    event_sequence: Annotated[int | None, Field(description="the tenant's event sequence this list was read at")] = None


def read_json(body: bytes) -> Any:
    """JSON as everybody behind us can keep it: no NaN, no half characters, no name twice, no endless nesting."""
    if not body:
        return None
    try:
        value = json.loads(body, object_pairs_hook=_refuse_doubles)
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise MalformedBody(f"The body is not JSON from line {error.lineno}, column {error.colno} on.") from error
    except RecursionError as error:
        raise MalformedBody(TOO_DEEP) from error
    except ValueError as error:
        raise MalformedBody(
            "The body is not JSON that can be kept: it has NaN, Infinity, a number of thousands of digits, half a"
            " character, or is not UTF-8 (RFC 8259, sections 6 and 8.1)."
        ) from error
    if _deeper(value, MOST_LEVELS):
        raise MalformedBody(TOO_DEEP)
    return value


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in members if names.count(name) > 1)
        raise MalformedBody(f"An object of the body has {twice[:40]!r} twice.")
    return members


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(one, levels - 1) for one in inside)


def counted(number: int, noun: str) -> str:
    """`1 machine`, `3 machines`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def canonical(value: Any) -> str:
    return _CANONICAL.encode(value)


def encode_cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
