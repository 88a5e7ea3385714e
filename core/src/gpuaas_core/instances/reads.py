"""Rows of instances, members and orphans, for the services and for `views`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Row, Select, bindparam, select

from ..capacity.reads import joined_with_node
from ..capacity.schemas import UsedBy
from ..catalog.reads import version_row
from ..kit.problems import NotFound
from ..operations.reads import find_operation, live_of_lock, operation_row, operations_in
from ..operations.tables import operations
from .states import OF_MEMBER
from .tables import allocation_holds, instances, members, orphans
from .work import Work, work_of

LEAVING = ("removing", "removed")
# Asked whenever an instance is shown, so built once.
_INSTANCE = select(instances).where(
    instances.c.project_id == bindparam("project"), instances.c.id == bindparam("instance")
)
_LOCKED_INSTANCE = _INSTANCE.with_for_update(key_share=True)
_UNLOCKED_INSTANCE = _INSTANCE.with_for_update(key_share=True, skip_locked=True)
_LAST = operations.alias("last_operation")
_MEMBERS = (
    joined_with_node(members, members.c.node_id)
    .outerjoin(_LAST, _LAST.c.id == members.c.last_operation_id)
    .add_columns(
        _LAST.c.target_kind.label("last_target_kind"),
        _LAST.c.kind.label("last_kind"),
        _LAST.c.status.label("last_status"),
        _LAST.c.params.label("last_params"),
    )
    .where(members.c.instance_id == bindparam("instance"))
)
MEMBER_COLUMNS = _MEMBERS.selected_columns.keys()
_PRESENT = _MEMBERS.where(members.c.state != "removed")
_PAST = _MEMBERS.where(members.c.state == "removed")
_STAYING = select(members.c.component_key, members.c.allocation_id).where(
    members.c.instance_id == bindparam("instance"), members.c.state.not_in(LEAVING)
)
_MEMBER = _MEMBERS.where(members.c.id == bindparam("member"))
_MANIFESTS: WeakKeyDictionary[Engine, dict[tuple[str, str], dict[str, Any]]] = WeakKeyDictionary()


def instance_row(tx: Connection, project_id: str, instance_id: str, *, lock: bool = False) -> Row[Any]:
    """`lock`: to change the instance, its members or its operations. Whoever changes one of them holds this row."""
    wanted = {"project": project_id, "instance": instance_id}
    row = tx.execute(_LOCKED_INSTANCE if lock else _INSTANCE, wanted).first()
    if row is None:
        raise NotFound("There is no such instance in this project.")
    return row


def try_instance_row(tx: Connection, project_id: str, instance_id: str) -> Row[Any] | None:
    """Locked, without waiting; none: another transaction has it."""
    return tx.execute(_UNLOCKED_INSTANCE, {"project": project_id, "instance": instance_id}).first()


def work_row(tx: Connection, project_id: str, operation_id: str) -> Work:
    return work_of(operation_row(tx, project_id, operation_id))


def instances_of(project_id: str, *, deleted: bool) -> Select[Any]:
    query = select(instances).where(instances.c.project_id == project_id)
    return query if deleted else query.where(instances.c.state != "deleted")


def operations_of(
    project_id: str,
    *,
    instance_id: str | None = None,
    member_id: str | None = None,
    batch_id: str | None = None,
    status: str | None = None,
    history: bool | None = None,
) -> Select[Any]:
    """`history`: only those that ended (True) or are under way (False)."""
    o = operations.c
    wanted = [o.lock_key == instance_id] if instance_id else []
    wanted += [o.target_kind == OF_MEMBER, o.target_id == member_id] if member_id else []
    wanted += [o.batch_id == batch_id] if batch_id else []
    wanted += [o.status == status] if status else []
    return operations_in(project_id, *wanted, history=history)


def members_query(instance_id: str, *, removed: bool = False) -> Select[Any]:
    """Those that are there; with `removed` only those that were."""
    return (_PAST if removed else _PRESENT).params(instance=instance_id)


def members_of(tx: Connection, instance_id: str, *, removed: bool = False) -> list[Row[Any]]:
    query = (_PAST if removed else _PRESENT).order_by(members.c.id)
    return list(tx.execute(query, {"instance": instance_id}))


def members_by_id(tx: Connection, instance_id: str, member_ids: Sequence[str]) -> dict[str, Row[Any]]:
    """Of the present and the past."""
    if not member_ids:
        return {}
    rows = tx.execute(_MEMBERS.where(members.c.id.in_(member_ids)), {"instance": instance_id})
    return {row.id: row for row in rows}


@dataclass(frozen=True)
class Staying:
    """Members that are not on their way out: how many of each component, and how many on each machine."""

    components: Counter[str]
    machines: Counter[str]

    @classmethod
    def of(cls, there: Iterable[Row[Any]]) -> "Staying":
        return cls.counted([(one.component_key, one.allocation_id) for one in there if one.state not in LEAVING])

    @classmethod
    def counted(cls, placed: Sequence[tuple[str, str]]) -> "Staying":
        return cls(Counter(component for component, _ in placed), Counter(machine for _, machine in placed))


def staying_in(tx: Connection, instance_id: str) -> Staying:
    return Staying.counted(
        [(component, machine) for component, machine in tx.execute(_STAYING, {"instance": instance_id})]
    )


def member_row(tx: Connection, instance_id: str, member_id: str) -> Row[Any]:
    """Of the present or the past."""
    row = tx.execute(_MEMBER, {"instance": instance_id, "member": member_id}).first()
    if row is None:
        raise NotFound("There is no such member in this instance.")
    return row


def member_of(tx: Connection, operation: Work) -> Row[Any] | None:
    return member_row(tx, operation.instance_id, operation.member_id) if operation.member_id else None


def live_operations(tx: Connection, instance_id: str) -> list[Work]:
    return [work_of(one) for one in live_of_lock(tx, instance_id)]


def last_operation(tx: Connection, instance: Row[Any]) -> Work | None:
    """The newest of the instance itself; members have their own."""
    found = find_operation(tx, instance.last_operation_id)
    return None if found is None else work_of(found)


def manifest_of(tx: Connection, instance: Row[Any]) -> dict[str, Any]:
    """Read once per store: a version never changes, and that of an instance was there before it."""
    known = _MANIFESTS.setdefault(tx.engine, {})
    key = (instance.app_slug, instance.version)
    if key not in known:
        known[key] = version_row(tx, *key).manifest
    return known[key]


def used_by(tx: Connection, allocation_ids: list[str]) -> dict[str, UsedBy]:
    query = (
        select(allocation_holds.c.allocation_id, instances.c.id, instances.c.name)
        .join(instances, instances.c.id == allocation_holds.c.instance_id)
        .where(allocation_holds.c.allocation_id.in_(allocation_ids))
    )
    return {row.allocation_id: UsedBy(instance_id=row.id, instance_name=row.name) for row in tx.execute(query)}


def orphans_of(project_id: str, *, resolved: bool) -> Select[Any]:
    at = orphans.c.resolved_at
    query = joined_with_node(orphans, orphans.c.node_id).where(orphans.c.project_id == project_id)
    return query.where(at.is_not(None) if resolved else at.is_(None))


def orphan_row(tx: Connection, project_id: str, orphan_id: str) -> Row[Any]:
    query = joined_with_node(orphans, orphans.c.node_id)
    row = tx.execute(query.where(orphans.c.project_id == project_id, orphans.c.id == orphan_id)).first()
    if row is None:
        raise NotFound("There is no such orphan record in this project.")
    return row
