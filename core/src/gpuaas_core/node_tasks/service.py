"""Queues tasks, leases them to their node, and records their results.

A node runs one task at a time and requests the next task only when it has none. If an unstarted task is still leased at
that moment, it was lost in transit and is leased again. Reports carry (task, attempt, epoch): a repeated report changes
nothing, and a report of an earlier attempt is rejected.
"""

from collections.abc import Sequence
from typing import TypedDict, Unpack

from sqlalchemy import Connection, and_, bindparam, func, insert, or_, select, update

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Place, Scope
from ..capacity import allocation_service
from ..capacity.reads import hold_leaving, node_row, trusts_allocation
from ..custody import task_keys
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.json_types import Json, JsonValue
from ..kit.wire import canonical
from . import schemas
from .artifact_fetch import ended as ended_fetch
from .errors import StaleTask, TooManyTasks
from .kinds import KINDS, WIPE
from .reads import TASKS, task_of_node
from .rows import Allocation, Node, TaskRow
from .states import LEASED, QUEUED, REPORTED, RUNNING, TASK, WAITING
from .tables import node_tasks

declare(
    {
        "capacity.task.queued": "A task was queued for a node, or queued again.",
        "capacity.task.running": "A node started a task.",
        "capacity.task.succeeded": "A node completed a task and reported evidence of the result.",
        "capacity.task.failed": "A task failed on a node.",
        "capacity.task.refused": "A node rejected a task that it could not validate.",
        "capacity.task.interrupted": (
            "A task was interrupted on a node. Tasks of this kind are not retried automatically."
        ),
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

_t = node_tasks.c
_LIVE = (_t.node_id == bindparam("node"), _t.ended_at.is_(None))
_IS_WAITING = or_(*(_t.state == state for state in WAITING))
_COUNT = select(func.count()).select_from(node_tasks).where(*_LIVE)
_ANY = select(_t.id).where(*_LIVE).limit(1)
# Queued; leased but not started; or started, abandoned, and idempotent. A wipe waits until the node has dropped the
# allocation from its trust: otherwise its holder could log in after it.
_TO_DO = and_(
    *_LIVE,
    _t.deadline_at > bindparam("now"),
    or_(_t.kind != WIPE, ~trusts_allocation(_t.allocation_id)),
    or_(_IS_WAITING, and_(_t.state == RUNNING, _t.idempotent, _t.lease_expires_at <= bindparam("now"))),
)
_WAITS = select(_t.id).where(_TO_DO).limit(1)
_NEXT = TASKS.where(_TO_DO).order_by(_t.id).limit(MOST_WAITING).locked(skip_locked=True)
_DUE = (
    TASKS.where(_t.ended_at.is_(None), _t.deadline_at <= bindparam("now"))
    .order_by(_t.id)
    .limit(AT_ONCE)
    .locked(skip_locked=True)
)
_UNSTARTED = TASKS.where(_t.operation_id == bindparam("operation"), _IS_WAITING).order_by(_t.id).locked()
_UNSTARTED_BEFORE = _UNSTARTED.where(_t.epoch < bindparam("epoch"))


class Changes(TypedDict, total=False):
    attempt: int
    lease_expires_at: int | None
    message: str
    evidence: Json
    started_at: int
    ended_at: int


def queue(
    ctx: Context,
    node: Node,
    kind: str,
    arguments: Json,
    *,
    allocation: Allocation | None = None,
    operation_id: str | None = None,
    epoch: int = 0,
    task_id: str | None = None,
) -> TaskRow:
    """Queue a task for a node; raise TooManyTasks if the node has too many queued tasks. The caller has validated the
    request (`kinds.asked_for`)."""
    if ctx.tx.execute(_COUNT, {"node": node.id}).scalar_one() >= MOST_WAITING:
        raise TooManyTasks(f"The node {node.name!r} already has {MOST_WAITING} queued tasks.")
    row: dict[str, object] = {
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
    made = TaskRow(*ctx.tx.execute(insert(node_tasks).values(**row).returning(node_tasks)).one())
    _tell(ctx, made)
    ctx.notify(f"node:{node.id}")
    return made


def waits(ctx: Context, node_id: str) -> bool:
    return ctx.tx.execute(_WAITS, {"node": node_id, "now": ctx.now}).first() is not None


def next_due(ctx: Context, node_id: str) -> int | None:
    """Return when a waiting poll must look for a task again, because a lease may have expired without a wake-up. Return
    None if the node has no task."""
    return ctx.now + AGAIN_MS if ctx.tx.execute(_ANY, {"node": node_id}).first() else None


def lease(ctx: Context, vault: Vault, node_id: str) -> schemas.LeasedTask | None:
    """Lease the oldest waiting task to its node, with a document signed for this attempt. Return None if no task
    waits."""
    for row in _NEXT.all(ctx.tx, node=node_id, now=ctx.now):
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
    """Renew the lease of a task. With the first renewal the node reports that it starts the task. Raises StaleTask if
    the node no longer holds this attempt."""
    row = _held(ctx, node_id, task_id, body)
    change: Changes = {"lease_expires_at": ctx.now + LEASE_S * 1000}
    if row.started_at is None:
        change["started_at"] = ctx.now
    _move(ctx, row, "renew", **change)
    if row.state != RUNNING:
        ctx.note(ctx.entry("allowed", ctx.reason))  # audited at the start only, not at renewals
    return schemas.TaskLeaseView(lease_expires_in_s=LEASE_S)


def report(ctx: Context, node_id: str, task_id: str, body: schemas.ReportTask) -> TaskRow:
    if task_of_node(ctx.tx, node_id, task_id).kind == WIPE:
        node_row(ctx.tx, node_id, lock=True)  # lock order: a node before its tasks
    row = task_of_node(ctx.tx, node_id, task_id, lock=True)
    ctx.resource_id = task_id
    if TASK.terminal(row.state) and (row.attempt, row.epoch, row.state) == (body.attempt, body.epoch, body.outcome):
        return row  # a repeated report: its first answer was lost
    row = _held(ctx, node_id, task_id, body)
    return _end(ctx, row, REPORTED[body.outcome], body.message, body.evidence)


def fence(ctx: Context, operation_id: str, epoch: int | None) -> None:
    """Cancel the operation's tasks that no node has started: those of claims before `epoch`, or all of them if `epoch`
    is None."""
    if epoch is None:
        rows = _UNSTARTED.all(ctx.tx, operation=operation_id)
    else:
        rows = _UNSTARTED_BEFORE.all(ctx.tx, operation=operation_id, epoch=epoch)
    take_back(ctx, rows, "The controller that requested it no longer holds the operation.")


def take_back(ctx: Context, rows: Sequence[TaskRow], why: str) -> None:
    """Cancel these tasks, which no node has started."""
    for row in rows:
        _end(ctx, row, "cancel", why)


def expire_due(ctx: Context) -> int:
    """End tasks whose deadline has passed, a limited number per call; return how many. Called by housekeeping."""
    rows = _DUE.all(ctx.tx, now=ctx.now)
    for row in rows:
        begun = "It was started; its result is unknown." if row.state == RUNNING else "No node started it."
        _end(ctx, row, "expire", f"The task expired. {begun}")
        ctx.note_own(_scope(row), row.id, "the task expired")
    return len(rows)


def forget_old(tx: Connection, now: int) -> int:
    return delete_some(tx, node_tasks, node_tasks.c.ended_at < now - KEPT_MS)


def _held(ctx: Context, node_id: str, task_id: str, body: schemas.RenewTask) -> TaskRow:
    row = task_of_node(ctx.tx, node_id, task_id, lock=True)
    ctx.resource_id = task_id
    good = row.state in (LEASED, RUNNING) and row.deadline_at > ctx.now
    if not good or (row.attempt, row.epoch) != (body.attempt, body.epoch):
        raise StaleTask(f"The task is {row.state} in attempt {row.attempt}; the report is about {body.attempt}.")
    return row


def _payload(ctx: Context, row: TaskRow) -> str:
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


def _end(ctx: Context, row: TaskRow, action: str, message: str, evidence: Json | None = None) -> TaskRow:
    ended: Changes = {"message": message, "evidence": evidence or {}, "ended_at": ctx.now, "lease_expires_at": None}
    ctx.notify(f"task:{row.id}", f"node:{row.node_id}")
    moved = _move(ctx, row, action, **ended)
    ended_fetch(ctx, moved)
    if row.kind == WIPE and action != "cancel":
        _wiped(ctx, moved)
    return moved


def _wiped(ctx: Context, row: TaskRow) -> None:
    node = node_row(ctx.tx, row.node_id, lock=True)
    leaving = hold_leaving(ctx.tx, row.node_id)
    if leaving is not None and leaving.id == row.allocation_id:
        allocation_service.wiped(ctx, node, leaving, clean=row.state == "succeeded", reason=row.message)


def _move(ctx: Context, row: TaskRow, action: str, **more: Unpack[Changes]) -> TaskRow:
    state = TASK.after(row.state, action)
    change = update(node_tasks).where(node_tasks.c.id == row.id).values(state=state, **more)
    moved = TaskRow(*ctx.tx.execute(change.returning(node_tasks)).one())
    if state not in (row.state, LEASED):
        _tell(ctx, moved)
    return moved


def _tell(ctx: Context, row: TaskRow) -> None:
    facts: dict[str, JsonValue] = {
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


def _scope(row: TaskRow) -> Scope:
    project: tuple[Place, ...] = (("project", row.project_id),) if row.project_id else ()
    return Scope((*project, ("tenant", row.tenant_id), PLATFORM), tenant_id=row.tenant_id, project_id=row.project_id)
