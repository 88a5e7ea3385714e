"""Rows of operations, for this room and for those above it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from ..authz.evaluate import PLATFORM, Scope
from ..kit.problems import UNSEEN, NotFound
from ..tenancy.reads import project_scope, tenant_scope
from .rows import OperationRow
from .states import LIVE
from .tables import operations

_BY_ID = select(operations).where(operations.c.id == bindparam("operation"))
_LOCKED = _BY_ID.with_for_update(key_share=True)
_LIVE_OF_LOCK = (
    select(operations)
    .where(operations.c.lock_key == bindparam("lock_key"), operations.c.status.in_(LIVE))
    .order_by(operations.c.created_at, operations.c.id)
)
_SCOPE = select(operations.c.scope_kind, operations.c.scope_id).where(operations.c.id == bindparam("operation"))
_SCOPES: dict[str, Callable[[Connection, str], Scope]] = {
    "project": project_scope,
    "tenant": tenant_scope,
    "platform": lambda _tx, _id: Scope((PLATFORM,)),
}


def operation_row(tx: Connection, scope_id: str | None, operation_id: str, *, lock: bool = False) -> OperationRow:
    """`scope_id`: it has to be there; none: the caller was let in by the operation's own scope."""
    row = tx.execute(_LOCKED if lock else _BY_ID, {"operation": operation_id}).first()
    if row is None or scope_id not in (None, row.scope_id):
        raise NotFound("There is no such operation in this project." if scope_id else UNSEEN)
    return OperationRow.of(row)


def find_operation(tx: Connection, operation_id: str | None) -> OperationRow | None:
    row = tx.execute(_BY_ID, {"operation": operation_id}).first()
    return None if row is None else OperationRow.of(row)


def live_of_lock(tx: Connection, lock_key: str) -> list[OperationRow]:
    """Those under way that have this lock key, for themselves or with others."""
    return [OperationRow.of(row) for row in tx.execute(_LIVE_OF_LOCK, {"lock_key": lock_key})]


def operations_in(scope_id: str, *wanted: ColumnElement[bool], history: bool | None = None) -> Select[Any]:
    """`history`: only those that ended (True) or are under way (False)."""
    o = operations.c
    query = select(operations).where(o.scope_id == scope_id, *wanted)
    if history is None:
        return query
    return query.where(o.status.not_in(LIVE) if history else o.status.in_(LIVE))


def of_batch(tx: Connection, scope_id: str | None, batch_id: str) -> list[OperationRow]:
    o = operations.c
    query = select(operations).where(o.batch_id == batch_id).order_by(o.created_at, o.id)
    rows = [OperationRow.of(row) for row in tx.execute(query)]
    found = [row for row in rows if scope_id in (None, row.scope_id)]
    if not found:
        raise NotFound("There is no such batch in this project." if scope_id else UNSEEN)
    return found


def scope_of(tx: Connection, scope_kind: str, scope_id: str) -> Scope:
    return _SCOPES[scope_kind](tx, scope_id)


def operation_scope(tx: Connection, operation_id: str) -> Scope:
    """Where an operation is: what a route without a project in its address asks permission for."""
    row = tx.execute(_SCOPE, {"operation": operation_id}).first()
    if row is None:
        raise NotFound(UNSEEN)
    return scope_of(tx, row.scope_kind, row.scope_id)
