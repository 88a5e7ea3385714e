"""Nothing is stuck silently: every few seconds the operations under way are looked at, by the platform's clock alone.

Called by housekeeping. One that stands still is marked, told and counted; one that nobody holds any more and whose
deadline has passed ends as `needs_attention`, with its own audit row. Old history is forgotten here, too.
"""

from typing import Any

from sqlalchemy import Row, and_, delete, exists, or_, select, update

from ..access.context import Context
from ..custody.tables import access_grants
from ..ledger import requests
from ..tenancy.reads import project_scope
from .claims import give_up
from .reads import instance_row
from .record import instance_facts, unstick
from .states import LIVE
from .tables import instances, members, operations

KEPT_DAYS = 30
UNCLAIMED_MS = 120_000
AT_ONCE = 200


def look_after(ctx: Context) -> int:
    """Marks what stands still and ends what is lost; returns how many rows were touched."""
    o = operations.c
    late = or_(
        o.stuck_reason.is_not(None),
        o.deadline_at <= ctx.now,
        and_(o.status == "running", o.lease_expires_at <= ctx.now),
        and_(o.status == "running", o.progressed_at + 2000 * o.expected_phase_s <= ctx.now),
        and_(o.status == "queued", o.created_at <= ctx.now - UNCLAIMED_MS, o.not_before <= ctx.now - UNCLAIMED_MS),
    )
    query = select(operations).join(instances, instances.c.id == o.instance_id).where(o.status.in_(LIVE), late)
    locked = query.order_by(o.id).limit(AT_ONCE).with_for_update(key_share=True, skip_locked=True)
    rows = ctx.tx.execute(locked).all()
    for row in rows:
        _look_at(ctx, row)
    return len(rows)


def why_stuck(row: Row[Any], now: int) -> str | None:
    """The first reason that holds."""
    if row.status == "running" and row.lease_expires_at <= now:  # a lease is as long as three heartbeats
        return "heartbeats_missed"
    if row.deadline_at is not None and row.deadline_at <= now:
        return "deadline_passed"
    if row.status == "running":
        slow = row.progressed_at is not None and row.progressed_at + 2000 * row.expected_phase_s <= now
        return "no_progress" if slow else None
    return "nobody_claims" if max(row.created_at, row.not_before) <= now - UNCLAIMED_MS else None


def _look_at(ctx: Context, row: Row[Any]) -> None:
    held = row.status == "running" and row.lease_expires_at > ctx.now
    if not held and row.deadline_at is not None and row.deadline_at <= ctx.now:
        _lose(ctx, row)
        return
    reason = why_stuck(row, ctx.now)
    if reason == row.stuck_reason:
        return
    here = _at(ctx, row)
    instance = instance_row(ctx.tx, row.project_id, row.instance_id)
    change = unstick(here, instance, row)
    if reason is not None:
        change = {"stuck_reason": reason, "stuck_since": ctx.now}
        facts = {"operation_id": row.id, "member_id": row.member_id, "kind": row.kind, "reason": reason}
        here.emit("apps.operation.stuck", row.id, instance_facts(instance) | facts)
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(**change))
    here.flush(audited=False)
    ctx.topics |= here.topics


def _lose(ctx: Context, row: Row[Any]) -> None:
    here = _at(ctx, row)
    here.resource_id, here.reason = row.id, "the deadline has passed and nobody holds it"
    give_up(here, instance_row(ctx.tx, row.project_id, row.instance_id), row)
    here.flush()
    ctx.topics |= here.topics


def _at(ctx: Context, row: Row[Any]) -> Context:
    """The platform itself, acting in the operation's project."""
    scope = project_scope(ctx.tx, row.project_id)
    return Context(ctx.tx, ctx.principal, scope, ctx.permission, ctx.correlation, ctx.now)


def forget_old(ctx: Context) -> int:
    """Operations that ended 30 days ago, unless something present still leads to them by its `last_operation_id`."""
    o = operations.c
    of_instance = exists().where(instances.c.last_operation_id == o.id, instances.c.state != "deleted")
    of_member = exists().where(members.c.last_operation_id == o.id, members.c.state != "removed")
    over = o.finished_at < ctx.now - KEPT_DAYS * 24 * 3600 * 1000
    old = select(o.id, o.batch_id).where(o.status.not_in(LIVE), over, ~of_instance, ~of_member).limit(AT_ONCE)
    rows = ctx.tx.execute(old).all()
    ids = [row.id for row in rows]
    ctx.tx.execute(delete(access_grants).where(access_grants.c.operation_id.in_(ids)))
    ctx.tx.execute(delete(operations).where(o.id.in_(ids)))
    batches = {row.batch_id for row in rows if row.batch_id}
    left = set(ctx.tx.execute(select(o.batch_id).where(o.batch_id.in_(batches))).scalars())
    requests.forget(ctx.tx, [*ids, *(batches - left)])
    return len(ids)
