"""What goes over the wire: strict inputs (unknown fields refused), plain outputs, cursor pages."""

import base64
import json
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from .clock import rfc3339

T = TypeVar("T")

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{1,38}[a-z0-9]$")]
Title = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f]+$")]
Moment = Annotated[str, BeforeValidator(lambda value: rfc3339(value) if isinstance(value, int) else value)]
Sentence = Annotated[str, StringConstraints(max_length=2000)]


class Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class Page(View, Generic[T]):
    items: list[T]
    next_cursor: str | None = None
    event_sequence: Annotated[int | None, Field(description="the tenant's event sequence this list was read at")] = None


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def encode_cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
