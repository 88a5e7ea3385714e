"""Queries for operations, for this room and the rooms above it."""

from collections.abc import Callable, Collection, Sequence

from sqlalchemy import ColumnElement, Connection, Subquery, bindparam, exists, select

from ..authz.evaluate import PLATFORM, Scope
from ..iam.directory import ACCOUNTS
from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query, Statement
from ..tenancy.reads import project_scope, tenant_scope
from .rows import OperationRow, OutcomeRow
from .states import LIVE
from .tables import operations

OPERATIONS = Query(select(operations), OperationRow)
OPERATION_ID = operations.c.id  # for lists in pages
_BY_ID = OPERATIONS.where(operations.c.id == bindparam("operation"))
_BY_IDS = OPERATIONS.where(operations.c.id.in_(bindparam("operations", expanding=True)))
_KINDS = Query(select(operations.c.id, operations.c.kind, operations.c.status), OutcomeRow)
_OUTCOME = _KINDS.where(operations.c.id == bindparam("operation"))
_OUTCOMES = _KINDS.where(operations.c.id.in_(bindparam("operations", expanding=True)))
_LOCKED = _BY_ID.locked()
_LIVE = OPERATIONS.where(operations.c.status.in_(LIVE)).order_by(operations.c.created_at, operations.c.id)
_LIVE_OF_LOCK = _LIVE.where(operations.c.lock_key == bindparam("lock_key"))
_LIVE_OF_LOCKS = _LIVE.where(operations.c.lock_key.in_(bindparam("lock_keys", expanding=True)))
_OF_BATCH = OPERATIONS.where(operations.c.batch_id == bindparam("batch")).order_by(
    operations.c.created_at, operations.c.id
)
_WITH_CORRELATION = (
    OPERATIONS.where(operations.c.correlation_id == bindparam("correlation"))
    .order_by(operations.c.id.desc())
    .limit(bindparam("most"))
)
_OF_APP = (operations.c.scope_id == bindparam("scope"), operations.c.app_slug == bindparam("app"))
_CLAIMED_BY = select(operations.c.id).where(*_OF_APP, operations.c.claimant_id == bindparam("claimant")).limit(1)
_ENABLED = select(ACCOUNTS.c.id).where(ACCOUNTS.c.kind == "service_account", ACCOUNTS.c.disabled_at.is_(None))
_CLAIMANTS = select(operations.c.claimant_id).where(*_OF_APP, operations.c.claimant_id.in_(_ENABLED)).distinct()
_LAST = operations.alias("last_operation")
_SCOPE = select(operations.c.scope_kind, operations.c.scope_id).where(operations.c.id == bindparam("operation"))
_SCOPES: dict[str, Callable[[Connection, str], Scope]] = {
    "project": project_scope,
    "tenant": tenant_scope,
    "platform": lambda _tx, _id: Scope((PLATFORM,)),
}


def operation_row(tx: Connection, scope_id: str | None, operation_id: str, *, lock: bool = False) -> OperationRow:
    """Return the operation, or raise 404. `scope_id`: the scope that the operation must be in; None: any scope, because
    the caller was authorized in the operation's own scope."""
    row = (_LOCKED if lock else _BY_ID).first(tx, operation=operation_id)
    if row is None or scope_id not in (None, row.scope_id):
        raise NotFound("There is no such operation in this project." if scope_id else UNSEEN)
    return row


def find_operation(tx: Connection, operation_id: str | None) -> OperationRow | None:
    return _BY_ID.first(tx, operation=operation_id)


def find_outcomes(tx: Connection, operation_ids: Collection[str]) -> dict[str, OutcomeRow]:
    """Return the kind and status of the operations with these ids. Unknown ids are omitted."""
    if len(operation_ids) > 1:
        return {row.id: row for row in _OUTCOMES.all(tx, operations=list(operation_ids))}
    return {row.id: row for operation_id in operation_ids for row in _OUTCOME.all(tx, operation=operation_id)}


def find_operations(tx: Connection, operation_ids: Collection[str]) -> dict[str, OperationRow]:
    if len(operation_ids) > 1:
        return {row.id: row for row in _BY_IDS.all(tx, operations=list(operation_ids))}
    return {row.id: row for operation_id in operation_ids for row in _BY_ID.all(tx, operation=operation_id)}


def with_correlation(tx: Connection, correlation_id: str, *, limit: int) -> list[OperationRow]:
    """Return the newest `limit` operations with this correlation id, of any target, sorted from old to new."""
    return _WITH_CORRELATION.all(tx, correlation=correlation_id, most=limit)[::-1]


def live_of_lock(tx: Connection, lock_key: str) -> list[OperationRow]:
    """Return the queued and running operations with this lock key, exclusive or shared."""
    return _LIVE_OF_LOCK.all(tx, lock_key=lock_key)


def live_of_locks(tx: Connection, lock_keys: Collection[str]) -> dict[str, list[OperationRow]]:
    """Return the queued and running operations for each of these lock keys."""
    if len(lock_keys) < 2:
        return {lock_key: live_of_lock(tx, lock_key) for lock_key in lock_keys}
    found: dict[str, list[OperationRow]] = {lock_key: [] for lock_key in lock_keys}
    for row in _LIVE_OF_LOCKS.all(tx, lock_keys=list(lock_keys)):
        found[row.lock_key].append(row)
    return found


def has_live(lock_key: ColumnElement[str]) -> ColumnElement[bool]:
    """Return an SQL condition that is true if a queued or running operation has this lock key."""
    return exists().where(operations.c.lock_key == lock_key, operations.c.status.in_(LIVE))


def live_targets(kind: str) -> Subquery:
    """Return an SQL subquery for the targets of one kind that have a queued or running operation, with the kind of the
    operation."""
    o = operations.c
    return select(o.target_id, o.kind).where(o.target_kind == kind, o.status.in_(LIVE)).subquery("live_targets")


def operations_in(
    scope_id: str,
    *,
    lock_key: str | None = None,
    target: tuple[str, str] | None = None,
    batch_id: str | None = None,
    status: str | None = None,
    history: bool | None = None,
) -> Query[OperationRow]:
    """Build the query for a list of operations.

    `target`: kind and id. `history`: only ended operations (True), only queued and running operations (False), or all
    (None).
    """
    o = operations.c
    query = OPERATIONS.where(o.scope_id == scope_id)
    if lock_key:
        query = query.where(o.lock_key == lock_key)
    if target:
        query = query.where(o.target_kind == target[0], o.target_id == target[1])
    if batch_id:
        query = query.where(o.batch_id == batch_id)
    if status:
        query = query.where(o.status == status)
    if history is None:
        return query
    return query.where(o.status.not_in(LIVE) if history else o.status.in_(LIVE))


def with_last_outcome(statement: Statement, operation_id: ColumnElement[str]) -> Statement:
    """Join rows of another room with the kind and status of their newest operation: `last_kind`, `last_status`."""
    return statement.outerjoin(_LAST, _LAST.c.id == operation_id).add_columns(
        _LAST.c.kind.label("last_kind"), _LAST.c.status.label("last_status")
    )


def with_last_operation(statement: Statement, operation_id: ColumnElement[str]) -> Statement:
    """Join rows of another room with their newest operation: `last_target_kind`, `last_kind`, `last_status`,
    `last_params`."""
    return statement.outerjoin(_LAST, _LAST.c.id == operation_id).add_columns(
        _LAST.c.target_kind.label("last_target_kind"),
        _LAST.c.kind.label("last_kind"),
        _LAST.c.status.label("last_status"),
        _LAST.c.params.label("last_params"),
    )


def has_claimed(tx: Connection, scope_id: str, app_slug: str, claimant_id: str) -> bool:
    """Whether the service account has claimed an operation of this app in this scope that is still stored."""
    found = tx.execute(_CLAIMED_BY, {"scope": scope_id, "app": app_slug, "claimant": claimant_id})
    return found.first() is not None


def enabled_claimants(tx: Connection, scope_id: str, app_slug: str) -> Sequence[str]:
    """Return the enabled service accounts that have claimed operations of this app in this scope."""
    return list(tx.execute(_CLAIMANTS, {"scope": scope_id, "app": app_slug}).scalars())


def of_batch(tx: Connection, scope_id: str | None, batch_id: str) -> list[OperationRow]:
    found = [row for row in _OF_BATCH.all(tx, batch=batch_id) if scope_id in (None, row.scope_id)]
    if not found:
        raise NotFound("There is no such batch in this project." if scope_id else UNSEEN)
    return found


def scope_of(tx: Connection, scope_kind: str, scope_id: str) -> Scope:
    return _SCOPES[scope_kind](tx, scope_id)


def operation_scope(tx: Connection, operation_id: str) -> Scope:
    """Return the scope of an operation, or raise 404. Routes without a project in their path check the permission in
    this scope."""
    row = tx.execute(_SCOPE, {"operation": operation_id}).first()
    if row is None:
        raise NotFound(UNSEEN)
    return scope_of(tx, row.scope_kind, row.scope_id)
