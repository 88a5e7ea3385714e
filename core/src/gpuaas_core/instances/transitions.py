"""The moves of instances and members, each with its event, so that no move goes unrecorded."""

from typing import Any

from sqlalchemy import Row, insert, select, update

from ..authz.context import Context
from ..custody import redemptions, secrets
from ..events.event_log import declare
from ..kit.ids import new_id
from .states import INSTANCE, MEMBER
from .tables import instances, members, orphans

declare(
    {
        "apps.instance.requested": "An instance is asked for; its operation waits for the app's controller.",
        "apps.instance.provisioning": "The app's controller is bringing the instance up.",
        "apps.instance.running": "The instance runs and was proven usable by its app.",
        "apps.instance.stopping": "The instance is being stopped.",
        "apps.instance.stopped": "The instance is stopped; its machines stay held for it.",
        "apps.instance.starting": "The instance is being started, or started again.",
        "apps.instance.updating": "New inputs or new keys are being applied to the instance.",
        "apps.instance.upgrading": "The instance is going to another version of its app.",
        "apps.instance.failed": "The instance could not be brought up, or broke; `operation_id` says why.",
        "apps.instance.deleting": "The instance is being torn down.",
        "apps.instance.deleted": "The instance is gone from its hosts, with evidence, or was abandoned.",
        "apps.instance.abandoned": "Somebody gave the teardown up: `deleted` without evidence, see its orphan records.",
        "apps.instance.updated": "What is known of the instance changed (health, access, detail).",
        "apps.member.added": "A member of an instance is planned on an allocation.",
        "apps.member.changed": "A member changed its state.",
        "apps.member.removed": "A member is gone from its host.",
        "apps.member.abandoned": "Somebody gave a member up without evidence; see its orphan record.",
        "apps.departure.certified": "It was proven that nothing is left on a machine; `digest` is of what was proven.",
        "apps.member.fenced": "A member's machine was declared gone: nobody gets onto it any more.",
        "apps.orphan.recorded": "Something may be left on a machine: nobody has proven that it is gone.",
        "apps.orphan.resolved": "Somebody has looked at what was left on a machine.",
        "apps.access.granted": "A controller got a short-lived certificate for one allocation.",
        "apps.access.opened": "A person got a short-lived certificate for the machine of a member.",
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
    if state == "deleted":
        secrets.forget(ctx.tx, row.id)
        redemptions.forget_instance(ctx.tx, row.id)
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


def record_orphan(ctx: Context, instance: Row[Any], member: Row[Any], operation_id: str | None, reason: str) -> str:
    """Something may be left on the member's machine: nothing new is placed there until somebody has looked."""
    values = {
        "id": new_id("orph"),
        "tenant_id": instance.tenant_id,
        "project_id": instance.project_id,
        "instance_id": instance.id,
        "member_id": member.id,
        "operation_id": operation_id,
        "allocation_id": member.allocation_id,
        "node_id": member.node_id,
        "reason": reason,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    ctx.tx.execute(insert(orphans).values(**values))
    facts = {"orphan_id": values["id"], "member_id": member.id, "allocation_id": member.allocation_id}
    ctx.emit("apps.orphan.recorded", values["id"], instance_facts(instance) | facts | {"node_id": member.node_id})
    return values["id"]
