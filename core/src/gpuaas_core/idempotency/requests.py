"""Stored answers to requests with an Idempotency-Key, written in the transaction of the change.

A crash therefore leaves either the change and its answer, or neither of them: a retry with the same key is always safe.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.exc import OperationalError

from ..kit.db import LOCK_TIMEOUT, delete_some, hold_name, sqlstate
from ..kit.json_types import JsonValue
from ..kit.problems import Problem
from ..kit.rows import Command, Query
from ..kit.wire import canonical
from .tables import seen_requests

KEPT_MS = 7 * 24 * 3600 * 1000
KEY_PATTERN = r"^[A-Za-z0-9._:-]{16,255}$"

_KEY = [seen_requests.c[name] for name in ("principal_id", "route", "scope_id", "key")]
_ADD = Command(insert(seen_requests), [column.name for column in seen_requests.columns])


class KeyMissing(Problem):
    status, code, title = 400, "idempotency_key_missing", "Idempotency-Key missing or malformed"
    way_out = "Send an Idempotency-Key of 16 to 255 letters, digits or ._:- and use the same key when you retry."


class KeyReused(Problem):
    status, code, title = 422, "idempotency_key_reused", "Idempotency-Key already used for another request"
    way_out = "Use a new key for a new request. Use a key again only to repeat exactly the same request."


class KeyInFlight(Problem):
    status, code, title = 409, "idempotency_in_flight", "The same request is still in progress"
    way_out = "Wait `retry_after_s` seconds, then send the same request again with the same Idempotency-Key."
    retryable = True


@dataclass(frozen=True)
class RequestKey:
    principal_id: str
    route: str
    scope_id: str
    key: str
    fingerprint: str


@dataclass(frozen=True)
class AnswerRow:
    """A stored answer: the status, body and location that a retry with the same key gets."""

    key: str
    fingerprint: str
    status: int
    body: str
    location: str | None


_ANSWERS = Query(select(*(seen_requests.c[name] for name in AnswerRow.__dataclass_fields__)), AnswerRow)
_SAME = _ANSWERS.where(*(column == bindparam(column.name) for column in _KEY))
_ACKNOWLEDGED = _ANSWERS.where(seen_requests.c.status < 300)


def fingerprint(path: str, query: str, body: JsonValue) -> str:
    return hashlib.sha256(canonical([path, query, body]).encode()).hexdigest()


def take(tx: Connection, request: RequestKey) -> AnswerRow | None:
    """Return the stored answer to the request, or reserve its key and return None. Waits while the same request is in
    progress, and raises KeyInFlight if that takes too long. Raises KeyReused if the key belongs to another request."""
    try:
        hold_name(tx, f"request\n{request.principal_id}\n{request.route}\n{request.scope_id}\n{request.key}")
    except OperationalError as error:
        if sqlstate(error) != LOCK_TIMEOUT:
            raise
        raise KeyInFlight("The first request with this key has not ended yet.", retry_after_s=1) from error
    return _seen(tx, request)


def _seen(tx: Connection, request: RequestKey) -> AnswerRow | None:
    row = _SAME.first(tx, **vars(request))
    if row is not None and row.fingerprint != request.fingerprint:
        raise KeyReused(f"The key {request.key!r} was already used for a different request.")
    return row


def remember(
    tx: Connection,
    request: RequestKey,
    *,
    status: int,
    body: str,
    location: str | None,
    now: int,
    kept_for: str | None = None,
) -> None:
    """Store the answer to a request for seven days. With `kept_for`, the id of an operation or batch, store it as long
    as that operation or batch exists."""
    columns = {"status": status, "body": body, "location": location, "at": now, "kept_for": kept_for}
    _ADD.run(tx, **vars(request), **columns)


def forget_old(tx: Connection, now: int) -> int:
    old = (seen_requests.c.at < now - KEPT_MS) & seen_requests.c.kept_for.is_(None)
    return delete_some(tx, seen_requests, old)


def forget(tx: Connection, kept_for: list[str]) -> int:
    """Delete the answers that were stored for these operations or batches; return how many."""
    return tx.execute(delete(seen_requests).where(seen_requests.c.kept_for.in_(kept_for))).rowcount


def kept_answers(tx: Connection) -> Iterator[AnswerRow]:
    """Iterate over the stored answers with a status below 300, read in pages."""
    return _ACKNOWLEDGED.stream(tx)
