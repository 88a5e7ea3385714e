"""What goes over the wire: strict inputs (unknown fields refused), plain outputs, cursor pages."""

import base64
import json
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from .clock import rfc3339
from .problems import MalformedBody

T = TypeVar("T")
MOST_LEVELS = 60

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,38}[a-z0-9]$")]
Title = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$")]
Moment = Annotated[str, BeforeValidator(lambda value: rfc3339(value) if isinstance(value, int) else value)]
# Controllers report what machines said; a NUL in it is no reason to lose the report, and no store keeps one in text.
Keepable = AfterValidator(lambda value: value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
Sentence = Annotated[str, StringConstraints(max_length=2000), Keepable]


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


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
    except (ValueError, RecursionError) as error:
        raise MalformedBody("The body is not JSON that can be kept (see RFC 8259, sections 4, 6 and 8.1).") from error
    if _deeper(value, MOST_LEVELS):
        raise MalformedBody(f"The body is nested more than {MOST_LEVELS} levels deep.")
    return value


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has the same member twice")
    return members


def _deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_deeper(one, levels - 1) for one in inside)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def encode_cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
