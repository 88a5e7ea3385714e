"""The moves of instances, members and operations, each with its event, so that no move goes unrecorded."""

from typing import Any

from sqlalchemy import Row, insert, select, update

from ..access.context import Context
from ..kit.ids import new_id
from ..ledger.events import declare
from .states import INSTANCE, MEMBER, OPERATION
from .tables import instances, members, operations

declare(
    {
        "apps.instance.requested": "An instance is asked for; its operation waits for the app's controller.",
        "apps.instance.provisioning": "The app's controller is bringing the instance up.",
        "apps.instance.running": "The instance runs and was proven usable by its app.",
        "apps.instance.failed": "The instance could not be brought up, or broke; `operation_id` says why.",
        "apps.instance.deleting": "The instance is being torn down.",
        "apps.instance.deleted": "The instance is gone from its hosts, with evidence.",
        "apps.instance.updated": "What is known of the instance changed (health, access, detail).",
        "apps.member.added": "A member of an instance is planned on an allocation.",
        "apps.member.changed": "A member changed its state.",
        "apps.member.removed": "A member is gone from its host.",
        "apps.operation.queued": "Work waits for the app's controller.",
        "apps.operation.claimed": "A controller works on the operation under a new claim epoch.",
        "apps.operation.progressed": "The operation reached a step.",
        "apps.operation.released": "The controller gave the operation back, to be claimed again.",
        "apps.operation.cancel_requested": "Somebody asked the operation to stop.",
        "apps.operation.succeeded": "The operation did what was asked.",
        "apps.operation.failed": "The operation failed; `error` says why and what to do.",
        "apps.operation.canceled": "The operation was canceled.",
        "apps.operation.superseded": "The operation gave way to a newer one.",
        "apps.operation.needs_attention": "The outcome is unknown, or it was tried too often: a person must look.",
        "apps.access.granted": "A controller got a short-lived certificate for one allocation.",
    }
)


def instance_facts(row: Row[Any]) -> dict[str, Any]:
    """The identifiers every app event carries."""
    return {
        "app_slug": row.app_slug,
        "app_instance_id": row.id,
        "instance_name": row.name,
        "operating_mode": row.operating_mode,
        "control_plane_scope": row.control_plane_scope,
        "runtime_backend": row.runtime_backend,
    }


def move_instance(ctx: Context, row: Row[Any], action: str, *, operation_id: str, **more: Any) -> Row[Any]:
    state = INSTANCE.after(row.state, action)
    change = {"state": state, "updated_at": ctx.now} | more
    ctx.tx.execute(update(instances).where(instances.c.id == row.id).values(**change))
    facts = instance_facts(row) | {"operation_id": operation_id, "state": state}
    if state != row.state:
        ctx.emit(f"apps.instance.{state}", row.id, facts)
    elif more:
        ctx.emit("apps.instance.updated", row.id, facts)
    return ctx.tx.execute(select(instances).where(instances.c.id == row.id)).one()


def move_member(
    ctx: Context, instance: Row[Any], row: Row[Any], action: str, *, operation_id: str, **more: Any
) -> None:
    state = MEMBER.after(row.state, action)
    change = {"state": state, "updated_at": ctx.now, "last_operation_id": operation_id}
    ids = {"correlation_id": ctx.correlation.correlation_id}
    ctx.tx.execute(update(members).where(members.c.id == row.id).values(**change, **ids, **more))
    if state != row.state:
        facts = {"member_id": row.id, "component_key": row.component_key, "state": state, "operation_id": operation_id}
        kind = "removed" if state == "removed" else "changed"
        ctx.emit(f"apps.member.{kind}", row.id, instance_facts(instance) | facts)


def move_operation(
    ctx: Context, instance: Row[Any], row: Row[Any], action: str, *, event: str | None = None, **more: Any
) -> Row[Any]:
    """The correlation id of the events is the request's own; the operation keeps the one it was asked under."""
    status = OPERATION.after(row.status, action)
    change = {"status": status} | more
    if OPERATION.terminal(status):
        change |= {"finished_at": ctx.now, "lease_expires_at": None}
    ctx.tx.execute(update(operations).where(operations.c.id == row.id).values(**change))
    moved = ctx.tx.execute(select(operations).where(operations.c.id == row.id)).one()
    emit_operation(ctx, instance, moved, event or status)
    return moved


def emit_operation(ctx: Context, instance: Row[Any], row: Row[Any], what: str) -> None:
    facts: dict[str, Any] = {
        "operation_id": row.id,
        "kind": row.kind,
        "status": row.status,
        "phase": row.phase,
        "step": row.step,
        "of": row.steps,
        "message": row.message,
        "claim_epoch": row.claim_epoch,
    }
    if row.error:
        facts["error"] = row.error
    ctx.emit(f"apps.operation.{what}", row.id, instance_facts(instance) | facts)


def queue_operation(ctx: Context, instance: Row[Any], kind: str, *, retry_of: str | None = None) -> Row[Any]:
    operation_id = new_id("op")
    values = {
        "id": operation_id,
        "project_id": instance.project_id,
        "tenant_id": instance.tenant_id,
        "instance_id": instance.id,
        "target_id": instance.id,
        "kind": kind,
        "app_slug": instance.app_slug,
        "version": instance.version,
        "status": "queued",
        "phase": "waiting",
        "step": 0,
        "steps": 0,
        "furthest_step": 0,
        "message": "Waiting for the app's controller",
        "attempts": 0,
        "claim_epoch": 0,
        "not_before": 0,
        "cancel_requested": 0,
        "retry_of": retry_of,
        "correlation_id": ctx.correlation.correlation_id,
        "requested_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    ctx.tx.execute(insert(operations).values(**values))
    change = {"last_operation_id": operation_id, "updated_at": ctx.now}
    ctx.tx.execute(update(instances).where(instances.c.id == instance.id).values(**change))
    row = ctx.tx.execute(select(operations).where(operations.c.id == operation_id)).one()
    emit_operation(ctx, instance, row, "queued")
    ctx.ring(f"work:{instance.project_id}")
    return row
