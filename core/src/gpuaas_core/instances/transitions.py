"""Transitions of instances and members, each with its event. All changes of their states are made here."""

from collections.abc import Mapping
from types import MappingProxyType

from ..authz.context import Context
from ..credentials import deliveries, secret_store
from ..events.event_log import declare
from ..kit.json_types import JsonValue
from ..kit.rows import Changes
from ..operations.targets import Subject, SubjectId
from ..teardown.rows import Leaver
from .rows import InstanceRow, MemberRow
from .states import INSTANCE, MEMBER
from .tables import instances, members

declare(
    {
        "apps.instance.requested": "An instance was requested; its operation is queued.",
        "apps.instance.provisioning": "The app's controller started to provision the instance.",
        "apps.instance.running": "The instance is running; its app has verified that the instance is usable.",
        "apps.instance.stopping": "The instance is being stopped.",
        "apps.instance.stopped": "The instance was stopped. It keeps its allocations.",
        "apps.instance.starting": "The instance is being started or restarted.",
        "apps.instance.updating": "New inputs or new keys are being applied to the instance.",
        "apps.instance.upgrading": "The instance is being upgraded, or rolled back, to another version of its app.",
        "apps.instance.failed": (
            "The instance failed to deploy or to change. The operation `operation_id` has the cause."
        ),
        "apps.instance.deleting": "The instance is being torn down.",
        "apps.instance.deleted": (
            "The instance was deleted: evidence shows that its nodes are clean, or its teardown was abandoned."
        ),
        "apps.instance.abandoned": (
            "The teardown was abandoned: the instance counts as deleted, but its nodes may not be clean. See its "
            "orphan records."
        ),
        "apps.instance.updated": "The observed state of the instance changed (health, access or detail).",
        "apps.member.added": "A member was added to an instance; it will be provisioned on an allocation.",
        "apps.member.changed": "The state of a member changed.",
        "apps.member.removed": "A member was removed from its node.",
        "apps.member.abandoned": (
            "A member was abandoned: it counts as removed, but its node may not be clean. See its orphan record."
        ),
        "apps.member.fenced": "A member was fenced: its node was declared lost, and all access to the node is blocked.",
        "apps.access.opened": "A person was issued a short-lived SSH certificate for the host of an instance member.",
    }
)

NOTHING: Mapping[str, object] = MappingProxyType({})
_INSTANCE_CHANGES, _MEMBER_CHANGES = Changes(instances), Changes(members)


def instance_facts(row: InstanceRow) -> dict[str, JsonValue]:
    """Return the fields that identify the instance in each of its events."""
    return {
        "app_slug": row.app_slug,
        "app_instance_id": row.id,
        "instance_name": row.name,
        "operating_mode": row.operating_mode,
        "control_plane_scope": row.control_plane_scope,
        "runtime_backend": row.runtime_backend,
    }


def subject_of(row: InstanceRow) -> Subject:
    """Return the instance as a `Subject`, for rooms below that store rows about it."""
    return Subject(
        id=SubjectId(row.id),
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        name=row.name,
        app_slug=row.app_slug,
        version=row.version,
        ended=row.state == "deleted",
        facts=instance_facts(row),
    )


def leaver_of(member: MemberRow) -> Leaver:
    return Leaver(
        id=member.id,
        component_key=member.component_key,
        ordinal=member.ordinal,
        allocation_id=member.allocation_id,
        node_id=member.node_id,
        node_name=member.node_name,
        address=member.address,
    )


def move_instance(
    ctx: Context, row: InstanceRow, action: str, observed: Mapping[str, object] = NOTHING, *, operation_id: str
) -> InstanceRow:
    """Apply a transition to the instance, emit its event and return the changed row. `observed`: other columns to
    change. Raise WrongMoment if the state does not allow the transition."""
    state = INSTANCE.after(row.state, action)
    moved = write_instance(ctx, row, {"state": state, **observed})
    facts = instance_facts(row) | {"operation_id": operation_id, "state": state}
    if state == "deleted":
        secret_store.forget(ctx.tx, row.id)
        deliveries.forget_instance(ctx.tx, row.id)
    if state != row.state:
        ctx.emit(f"apps.instance.{state}", row.id, facts)
    elif observed:
        ctx.emit("apps.instance.updated", row.id, facts)
    return moved


def write_instance(ctx: Context, row: InstanceRow, change: Mapping[str, object]) -> InstanceRow:
    return _INSTANCE_CHANGES.one(ctx.tx, row.id, {**change, "updated_at": ctx.now}, InstanceRow)


def write_member(ctx: Context, row: MemberRow, change: Mapping[str, object]) -> None:
    _MEMBER_CHANGES.run(ctx.tx, row.id, {**change, "updated_at": ctx.now})


def move_member(
    ctx: Context,
    instance: InstanceRow,
    row: MemberRow,
    action: str,
    observed: Mapping[str, object] = NOTHING,
    *,
    operation_id: str | None,
) -> None:
    """Apply a transition to the member and emit its event. `observed`: other columns to change. Raise WrongMoment if
    the state does not allow the transition."""
    state = MEMBER.after(row.state, action)
    ids = {"last_operation_id": operation_id, "correlation_id": ctx.correlation.correlation_id}
    write_member(ctx, row, {"state": state, **ids, **observed})
    if state != row.state:
        facts = {"member_id": row.id, "component_key": row.component_key, "state": state, "operation_id": operation_id}
        kind = "removed" if state == "removed" else "changed"
        ctx.emit(f"apps.member.{kind}", row.id, {**instance_facts(instance), **facts})
