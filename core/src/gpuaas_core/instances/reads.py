"""What may be read of instances and operations: rows for the services, views for everybody."""

from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, select

from ..capacity.reads import joined_with_node
from ..capacity.schemas import UsedBy
from ..kit.problems import NotFound
from . import schemas
from .states import INSTANCE, LIVE, OPERATION, RETRYABLE
from .tables import allocation_holds, instances, members, operations

# Asked whenever an instance is shown, so built once.
_INSTANCE = select(instances).where(
    instances.c.project_id == bindparam("project"), instances.c.id == bindparam("instance")
)
_LOCKED_INSTANCE = _INSTANCE.with_for_update(key_share=True)
_OPERATION = select(operations).where(
    operations.c.project_id == bindparam("project"), operations.c.id == bindparam("operation")
)
_MEMBERS = (
    joined_with_node(members, members.c.node_id)
    .where(members.c.instance_id == bindparam("instance"))
    .order_by(members.c.id)
)
_LIVE_OPERATION = select(operations).where(
    operations.c.instance_id == bindparam("instance"), operations.c.status.in_(LIVE)
)


def instance_row(tx: Connection, project_id: str, instance_id: str, *, lock: bool = False) -> Row[Any]:
    """`lock`: to change the instance, its members or its operations. Whoever changes one of them holds this row."""
    wanted = {"project": project_id, "instance": instance_id}
    row = tx.execute(_LOCKED_INSTANCE if lock else _INSTANCE, wanted).first()
    if row is None:
        raise NotFound("There is no such instance in this project.")
    return row


def operation_row(tx: Connection, project_id: str, operation_id: str) -> Row[Any]:
    row = tx.execute(_OPERATION, {"project": project_id, "operation": operation_id}).first()
    if row is None:
        raise NotFound("There is no such operation in this project.")
    return row


def hold_operation(tx: Connection, project_id: str, operation_id: str) -> tuple[Row[Any], Row[Any]]:
    """The operation and its instance, the instance locked first and the operation read after that."""
    seen = operation_row(tx, project_id, operation_id)
    instance = instance_row(tx, project_id, seen.instance_id, lock=True)
    return operation_row(tx, project_id, operation_id), instance


def instances_of(project_id: str, *, deleted: bool) -> Select[Any]:
    query = select(instances).where(instances.c.project_id == project_id)
    return query if deleted else query.where(instances.c.state != "deleted")


def operations_of(project_id: str, instance_id: str | None, status: str | None) -> Select[Any]:
    query = select(operations).where(operations.c.project_id == project_id)
    if instance_id:
        query = query.where(operations.c.instance_id == instance_id)
    return query.where(operations.c.status == status) if status else query


def members_of(tx: Connection, instance_id: str) -> list[Row[Any]]:
    return list(tx.execute(_MEMBERS, {"instance": instance_id}))


def live_operation(tx: Connection, instance_id: str) -> Row[Any] | None:
    return tx.execute(_LIVE_OPERATION, {"instance": instance_id}).first()


def used_by(tx: Connection, allocation_ids: list[str]) -> dict[str, UsedBy]:
    query = (
        select(allocation_holds.c.allocation_id, instances.c.id, instances.c.name)
        .join(instances, instances.c.id == allocation_holds.c.instance_id)
        .where(allocation_holds.c.allocation_id.in_(allocation_ids))
    )
    return {row.allocation_id: UsedBy(instance_id=row.id, instance_name=row.name) for row in tx.execute(query)}


def instance_view(tx: Connection, row: Row[Any]) -> schemas.InstanceView:
    live = live_operation(tx, row.id)
    facts = dict(row._mapping) | {
        "org_id": row.tenant_id,
        "health": {"status": row.health_status, "sentence": row.health_sentence},
        "members": [schemas.MemberView.model_validate(member) for member in members_of(tx, row.id)],
        "current_operation_id": live.id if live else None,
        "available_actions": _instance_actions(row, live),
    }
    return schemas.InstanceView.model_validate(facts)


def operation_view(tx: Connection, row: Row[Any]) -> schemas.OperationView:
    facts = dict(row._mapping) | {
        "target": {"app_slug": row.app_slug, "version": row.version},
        "progress": _progress(row),
        "cancel_requested": bool(row.cancel_requested),
        "available_actions": _operation_actions(tx, row),
    }
    return schemas.OperationView.model_validate(facts)


def _progress(row: Row[Any]) -> schemas.ProgressView:
    done = row.status == "succeeded"
    percent = 100 if done else min(99, round(100 * row.furthest_step / row.steps)) if row.steps else 0
    return schemas.ProgressView(step=row.step, of=row.steps, message=row.message, percent=percent)


def _instance_actions(row: Row[Any], live: Row[Any] | None) -> list[schemas.ActionView]:
    can_delete = INSTANCE.allows(row.state, "delete")
    can_retry = live is None and INSTANCE.allows(row.state, "retry")
    return [
        _action("decommission", can_delete, f"the instance is {row.state}"),
        _action("retry", can_retry, f"the instance is {row.state}" if live is None else "an operation is under way"),
    ]


def _operation_actions(tx: Connection, row: Row[Any]) -> list[schemas.ActionView]:
    ended = f"the operation is {row.status}"
    why_not_cancel = ended if OPERATION.terminal(row.status) else "it was asked to stop already"
    why_not_retry = _why_not_retry(tx, row)
    return [
        _action("retry", not why_not_retry, why_not_retry),
        _action("cancel", not OPERATION.terminal(row.status) and not row.cancel_requested, why_not_cancel),
    ]


def _why_not_retry(tx: Connection, row: Row[Any]) -> str:
    """The same questions as service.retry asks; empty when it would be done."""
    if row.status not in RETRYABLE:
        return f"the operation is {row.status}"
    columns = (instances.c.state, instances.c.last_operation_id)
    instance = tx.execute(select(*columns).where(instances.c.id == row.instance_id)).one()
    if instance.last_operation_id != row.id:
        return f"a newer operation of the instance exists: {instance.last_operation_id}"
    return "" if INSTANCE.allows(instance.state, "retry") else f"the instance is {instance.state}"


def _action(name: str, allowed: bool, why_not: str) -> schemas.ActionView:
    return schemas.ActionView(action=name, allowed=allowed, reason="" if allowed else why_not)
