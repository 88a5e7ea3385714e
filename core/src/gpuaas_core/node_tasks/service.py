"""Queue tasks, lease them to their node, record how they ended.

A node runs one task at a time and requests the next when it holds none; so a task leased before that request was lost
in transit. Reports carry (task, attempt, epoch): a repeated report changes nothing, one of an earlier attempt is
rejected.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, func, insert, or_, select, update

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..capacity import allocation_service
from ..capacity.reads import hold_leaving, node_row
from ..capacity.tables import allocations, nodes
from ..custody import task_keys
from ..events.event_log import declare
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.wire import canonical
from . import schemas
from .artifact_fetch import ended as ended_fetch
from .errors import StaleTask, TooManyTasks
from .kinds import KINDS, WIPE
from .reads import task_of_node
from .states import LEASED, QUEUED, REPORTED, RUNNING, TASK, WAITING
from .tables import node_tasks

declare(
    {
        "capacity.task.queued": "A task was queued for a node, or queued again.",
        "capacity.task.running": "A node started a task.",
        "capacity.task.succeeded": "A node completed a task, with evidence.",
        "capacity.task.failed": "A task failed on a node.",
        "capacity.task.refused": "A node rejected a task that it could not validate.",
        "capacity.task.interrupted": "A task that is not repeated automatically was interrupted on a node.",
        "capacity.task.expired": "A task expired; its result is unknown.",
        "capacity.task.canceled": "A task was canceled before a node started it.",
    }
)

LEASE_S = 30
MOST_WAITING = 100
MOST_ATTEMPTS = 5
BACKDATED_S = 60
KEPT_MS = 30 * 24 * 3600 * 1000
AT_ONCE = 200
AGAIN_MS = 1_500  # between two reads of a node that waits for a task which exists and cannot be handed out yet


def queue(
    ctx: Context,
    node: Row[Any],
    kind: str,
    arguments: dict[str, Any],
    *,
    allocation: Row[Any] | None = None,
    operation_id: str | None = None,
    epoch: int = 0,
    task_id: str | None = None,
) -> Row[Any]:
    """The caller has validated the request (`kinds.asked_for`)."""
    live = select(func.count()).where(node_tasks.c.node_id == node.id, node_tasks.c.ended_at.is_(None))
    if ctx.tx.execute(live).scalar_one() >= MOST_WAITING:
        raise TooManyTasks(f"The node {node.name!r} already has {MOST_WAITING} queued tasks.")
    row = {
        "id": task_id or new_id("task"),
        "tenant_id": node.tenant_id,
        "node_id": node.id,
        "allocation_id": allocation.id if allocation else None,
        "project_id": allocation.project_id if allocation else None,
        "operation_id": operation_id,
        "kind": kind,
        "arguments": arguments,
        "epoch": epoch,
        "idempotent": KINDS[kind].idempotent,
        "state": QUEUED,
        "attempt": 0,
        "deadline_at": ctx.now + (KINDS[kind].waits_s + KINDS[kind].time_limit_s) * 1000,
        "message": "",
        "evidence": {},
        "asked_by": ctx.principal.id,
        "correlation_id": ctx.correlation.correlation_id,
        "created_at": ctx.now,
    }
    made = ctx.tx.execute(insert(node_tasks).values(**row).returning(node_tasks)).one()
    _tell(ctx, made)
    ctx.notify(f"tasks:{node.id}")
    return made


def waits(ctx: Context, node_id: str) -> bool:
    return ctx.tx.execute(select(node_tasks.c.id).where(_to_do(ctx, node_id)).limit(1)).first() is not None


def next_due(ctx: Context, node_id: str) -> int | None:
    """When to ask again although nothing rings: a task that has not ended may become free by itself."""
    live = select(node_tasks.c.id).where(node_tasks.c.node_id == node_id, node_tasks.c.ended_at.is_(None)).limit(1)
    return ctx.now + AGAIN_MS if ctx.tx.execute(live).first() else None


def lease(ctx: Context, vault: Any, node_id: str) -> schemas.LeasedTask | None:
    """Lease the oldest queued task. Its document is signed for each attempt."""
    query = select(node_tasks).where(_to_do(ctx, node_id)).order_by(node_tasks.c.id).with_for_update(skip_locked=True)
    for row in ctx.tx.execute(query.limit(MOST_WAITING)).all():
        row = row if row.state == QUEUED else _move(ctx, row, "lapse")
        if row.attempt >= MOST_ATTEMPTS:
            _end(ctx, row, "give_up", f"The task was leased {row.attempt} times without a result.")
            continue
        leased = _move(ctx, row, "lease", attempt=row.attempt + 1, lease_expires_at=ctx.now + LEASE_S * 1000)
        ctx.resource_id = leased.id
        return schemas.LeasedTask(
            task_id=leased.id,
            attempt=leased.attempt,
            epoch=leased.epoch,
            lease_expires_in_s=LEASE_S,
            document=schemas.SignedTask(**task_keys.sign(vault, _payload(ctx, leased))),
        )
    return None


def renew(ctx: Context, node_id: str, task_id: str, body: schemas.RenewTask) -> schemas.TaskLeaseView:
    """The first renewal is the node's report that it starts."""
    row = _held(ctx, node_id, task_id, body)
    change: dict[str, Any] = {"lease_expires_at": ctx.now + LEASE_S * 1000}
    _move(ctx, row, "renew", **change | ({"started_at": ctx.now} if row.started_at is None else {}))
    if row.state != RUNNING:
        ctx.note(ctx.entry("allowed", ctx.reason))  # audited at the start only, not at renewals
    return schemas.TaskLeaseView(lease_expires_in_s=LEASE_S)


def report(ctx: Context, node_id: str, task_id: str, body: schemas.ReportTask) -> Row[Any]:
    if task_of_node(ctx.tx, node_id, task_id).kind == WIPE:
        node_row(ctx.tx, node_id, lock=True)  # lock order: a node before its tasks
    row = task_of_node(ctx.tx, node_id, task_id, lock=True)
    ctx.resource_id = task_id
    if TASK.terminal(row.state) and (row.attempt, row.epoch, row.state) == (body.attempt, body.epoch, body.outcome):
        return row  # a repeated report: its first answer was lost
    row = _held(ctx, node_id, task_id, body)
    return _end(ctx, row, REPORTED[body.outcome], body.message, body.evidence)


def fence(ctx: Context, operation_id: str, epoch: int | None) -> None:
    """Cancel the tasks of earlier claims that no node has started; without an epoch, all of the operation."""
    t = node_tasks.c
    mine = [t.operation_id == operation_id, t.state.in_(WAITING)] + ([] if epoch is None else [t.epoch < epoch])
    rows = ctx.tx.execute(select(node_tasks).where(*mine).order_by(t.id).with_for_update()).all()
    take_back(ctx, rows, "The controller that requested it no longer holds the operation.")


def take_back(ctx: Context, rows: Sequence[Row[Any]], why: str) -> None:
    """Cancel tasks that no node has started."""
    for row in rows:
        _end(ctx, row, "cancel", why)


def expire_due(ctx: Context) -> int:
    """Called by housekeeping: end tasks whose time limit has passed."""
    due = select(node_tasks).where(node_tasks.c.ended_at.is_(None), node_tasks.c.deadline_at <= ctx.now)
    rows = ctx.tx.execute(due.order_by(node_tasks.c.id).limit(AT_ONCE).with_for_update(skip_locked=True)).all()
    for row in rows:
        begun = "It was started; its result is unknown." if row.state == RUNNING else "No node started it."
        _end(ctx, row, "expire", f"The task expired. {begun}")
        ctx.note_own(_scope(row), row.id, "the task expired")
    return len(rows)


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, node_tasks, node_tasks.c.ended_at < now - KEPT_MS)


def _to_do(ctx: Context, node_id: str) -> Any:
    """Queued; leased but not started; or started, abandoned, and idempotent.

    A wipe waits until the node has dropped the allocation from its trust: otherwise its holder could log in after it.
    """
    t, a, n = node_tasks.c, allocations.c, nodes.c
    abandoned = and_(t.state == RUNNING, t.idempotent, t.lease_expires_at <= ctx.now)
    trusted = exists().where(a.id == t.allocation_id, n.id == a.node_id, n.trust_applied < a.trust_generation)
    in_time = and_(t.ended_at.is_(None), t.deadline_at > ctx.now, or_(t.kind != WIPE, ~trusted))
    return and_(t.node_id == node_id, in_time, or_(t.state.in_(WAITING), abandoned))


def _held(ctx: Context, node_id: str, task_id: str, body: schemas.RenewTask) -> Row[Any]:
    row = task_of_node(ctx.tx, node_id, task_id, lock=True)
    ctx.resource_id = task_id
    good = row.state in (LEASED, RUNNING) and row.deadline_at > ctx.now
    if not good or (row.attempt, row.epoch) != (body.attempt, body.epoch):
        raise StaleTask(f"The task is {row.state} in attempt {row.attempt}; the report is about {body.attempt}.")
    return row


def _payload(ctx: Context, row: Row[Any]) -> str:
    payload = {
        "task_id": row.id,
        "node_id": row.node_id,
        "allocation_id": row.allocation_id,
        "operation_id": row.operation_id,
        "epoch": row.epoch,
        "attempt": row.attempt,
        "kind": row.kind,
        "arguments": row.arguments,
        "not_before": ctx.now // 1000 - BACKDATED_S,
        "expires_at": row.deadline_at // 1000,
    }
    return canonical(payload)


def _end(ctx: Context, row: Row[Any], action: str, message: str, evidence: dict[str, Any] | None = None) -> Row[Any]:
    ended = {"message": message, "evidence": evidence or {}, "ended_at": ctx.now, "lease_expires_at": None}
    ctx.notify(f"task:{row.id}")
    moved = _move(ctx, row, action, **ended)
    ended_fetch(ctx, moved)
    if row.kind == WIPE and action != "cancel":
        _wiped(ctx, moved)
    return moved


def _wiped(ctx: Context, row: Row[Any]) -> None:
    node = node_row(ctx.tx, row.node_id, lock=True)
    leaving = hold_leaving(ctx.tx, row.node_id)
    if leaving is not None and leaving.id == row.allocation_id:
        allocation_service.wiped(ctx, node, leaving, clean=row.state == "succeeded", reason=row.message)


def _move(ctx: Context, row: Row[Any], action: str, **more: Any) -> Row[Any]:
    state = TASK.after(row.state, action)
    change = update(node_tasks).where(node_tasks.c.id == row.id).values(state=state, **more)
    moved = ctx.tx.execute(change.returning(node_tasks)).one()
    if state not in (row.state, LEASED):
        _tell(ctx, moved)
    return moved


def _tell(ctx: Context, row: Row[Any]) -> None:
    facts = {
        "task_id": row.id,
        "node_id": row.node_id,
        "kind": row.kind,
        "state": row.state,
        "attempt": row.attempt,
        "message": row.message,
    }
    if row.allocation_id:
        facts["allocation_id"] = row.allocation_id
    if row.operation_id:
        facts["operation_id"] = row.operation_id
    ctx.emit(f"capacity.task.{row.state}", row.id, facts, scope=_scope(row))


def _scope(row: Row[Any]) -> Scope:
    project = (("project", row.project_id),) if row.project_id else ()
    return Scope((*project, ("tenant", row.tenant_id), PLATFORM), tenant_id=row.tenant_id, project_id=row.project_id)
