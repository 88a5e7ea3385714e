"""An API call as data: what to send and the type of the answer. calls/ creates Requests, transport.py sends them.

A Request gets its idempotency key when it is created, so sending it twice has one effect.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

JsonObject = Mapping[str, object]  # an object of JSON that the caller gives
JsonList = Sequence[object]
T = TypeVar("T")
Item = TypeVar("Item")


class Page(msgspec.Struct, Generic[Item], kw_only=True):
    """One page of a list. A follower that starts at `event_sequence` gets every change made after the page was read."""

    items: list[Item]
    next_cursor: str | None = None
    event_sequence: int | None = None


def new_idempotency_key() -> str:
    return f"sdk-{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    method: str
    path: str
    answer: type[T]  # NoneType where no body is expected
    query: JsonObject = field(default_factory=dict[str, object])
    body: JsonObject | None = None
    form: dict[str, str] | None = None
    key: str = field(default_factory=new_idempotency_key)
    headers: dict[str, str] = field(default_factory=dict[str, str])  # preconditions: If-Match, If-None-Match
    anonymous: bool = False  # no token and no idempotency key: sign-in, token, public reads
    patience_s: float = 30.0  # how long an answer may take
    retries: bool = True

    def within(self, seconds: float) -> Request[T]:
        """Return the same request with another timeout."""
        return replace(self, patience_s=seconds)


class EmptyId(ValueError):
    """An id was empty, so the path would name another resource. Nothing is sent."""


def at(template: str, *ids: str) -> str:
    """Insert the percent-encoded ids into a path template. Raises EmptyId if an id is empty."""
    if not all(ids):
        raise EmptyId(f"{template}: an id is empty")
    return template.format(*(quote(i, safe="") for i in ids))


def given(**fields: object) -> dict[str, object]:
    """Return the arguments that are not None. For the others the platform uses its defaults."""
    return {name: value for name, value in fields.items() if value is not None}


def get(answer: type[T], template: str, *ids: str, **query: object) -> Request[T]:
    return Request("GET", at(template, *ids), answer, query=given(**query))


def post(answer: type[T], template: str, *ids: str, **body: object) -> Request[T]:
    return Request("POST", at(template, *ids), answer, body=given(**body))


def put(answer: type[T], template: str, *ids: str, etag: str | None, **body: object) -> Request[T]:
    """Build a PUT request that replaces the version identified by `etag`. With None it creates the resource."""
    return Request("PUT", at(template, *ids), answer, body=given(**body), headers=_precondition(etag))


def delete(answer: type[T], template: str, *ids: str, etag: str) -> Request[T]:
    return Request("DELETE", at(template, *ids), answer, headers=_precondition(etag))


def _precondition(etag: str | None) -> dict[str, str]:
    return {"If-None-Match": "*"} if etag is None else {"If-Match": f'"{etag}"'}
