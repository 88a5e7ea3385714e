"""Queries for instances and members, for this room and the rooms above it."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Connection, Engine, Label, Text, and_, bindparam, cast, func, null, or_, select

from ..capacity.reads import joined_with_node
from ..capacity.schemas import UsedBy
from ..catalog.manifest_types import Manifest
from ..catalog.reads import version_row
from ..kit.problems import NotFound
from ..kit.rows import Query, names_of
from ..operations.reads import (
    find_operation,
    find_outcomes,
    has_live,
    live_of_lock,
    live_of_locks,
    operation_row,
    with_last_operation,
    with_last_outcome,
)
from ..operations.rows import OperationId, OutcomeRow
from .rows import (
    InstanceAndLastRow,
    InstanceId,
    InstanceRow,
    InstanceSummary,
    ListedMember,
    MemberId,
    MemberRow,
    Work,
    work_of,
)
from .tables import instances, members

LEAVING = ("removing", "removed")


@dataclass(frozen=True)
class PlacedRow:
    """The component, the allocation and the state of a member."""

    component_key: str
    allocation_id: str
    state: str


INSTANCES = Query(select(instances), InstanceRow)
_INSTANCE = INSTANCES.where(instances.c.project_id == bindparam("project"), instances.c.id == bindparam("instance"))
_HAS_LIVE = has_live(instances.c.id).label("has_live")
_SHOWN_INSTANCE = Query(
    with_last_outcome(select(instances), instances.c.last_operation_id).add_columns(_HAS_LIVE), InstanceAndLastRow
).where(instances.c.project_id == bindparam("project"), instances.c.id == bindparam("instance"))
_SUMMARY = Query(
    select(*(instances.c[name] for name in names_of(InstanceSummary) if name in instances.c), _HAS_LIVE),
    InstanceSummary,
).where(instances.c.project_id == bindparam("project"), instances.c.id == bindparam("instance"))
_LOCKED_INSTANCE = _INSTANCE.locked()
_UNLOCKED_INSTANCE = _INSTANCE.locked(skip_locked=True)
_BY_ID = INSTANCES.where(instances.c.id == bindparam("instance"))
_BY_IDS = INSTANCES.where(instances.c.id.in_(bindparam("instances", expanding=True)))
_NAMES = (
    select(instances.c.id, instances.c.name)
    .where(instances.c.id.in_(bindparam("instances", expanding=True)))
    .order_by(instances.c.name, instances.c.id)
)
_RUNNING_NAMES = (
    select(instances.c.name)
    .where(
        instances.c.project_id == bindparam("project"),
        instances.c.app_slug == bindparam("app"),
        instances.c.state != "deleted",
    )
    .order_by(instances.c.name)
)

_NODES = joined_with_node(members, members.c.node_id).selected_columns
MEMBERS = Query(
    with_last_operation(
        joined_with_node(members, members.c.node_id).with_only_columns(
            *members.c, _NODES.node_name, _NODES.address, _NODES.region, _NODES.sku, _NODES.facts
        ),
        members.c.last_operation_id,
    ),
    MemberRow,
)
_OF_INSTANCE = MEMBERS.where(members.c.instance_id == bindparam("instance"))


def _as_text(name: str, column: ColumnElement[object]) -> Label[str]:
    return cast(column, Text).label(name)


_WHOLE = with_last_operation(joined_with_node(members, members.c.node_id), members.c.last_operation_id)
_WHOLE_COLUMNS = _WHOLE.selected_columns
_WRITTEN = {
    "facts": _as_text("facts", _WHOLE_COLUMNS.facts),
    "adapter_detail": _as_text("adapter_detail", _WHOLE_COLUMNS.adapter_detail),
    "last_params": _as_text("last_params", _WHOLE_COLUMNS.last_params),
    "current_operation_id": null().label("current_operation_id"),
    "available_actions": null().label("available_actions"),
}
_LISTED = Query(
    _WHOLE.with_only_columns(
        *(_WRITTEN[name] if name in _WRITTEN else _WHOLE_COLUMNS[name] for name in names_of(ListedMember))
    ),
    ListedMember,
).where(members.c.instance_id == bindparam("instance"))
_LISTED_PRESENT = _LISTED.where(members.c.state != "removed")
_LISTED_PAST = _LISTED.where(members.c.state == "removed")
_PRESENT = _OF_INSTANCE.where(members.c.state != "removed")
_PAST = _OF_INSTANCE.where(members.c.state == "removed")
_ORDERED_PRESENT = _PRESENT.order_by(members.c.id)
_ORDERED_PAST = _PAST.order_by(members.c.id)
_FIRST_PRESENT = _ORDERED_PRESENT.limit(bindparam("most"))
_FIRST_PAST = _ORDERED_PAST.limit(bindparam("most"))
_MEMBER = _OF_INSTANCE.where(members.c.id == bindparam("member"))
_MEMBERS_BY_ID = _OF_INSTANCE.where(members.c.id.in_(bindparam("members", expanding=True)))
_ANY_MEMBER = MEMBERS.where(members.c.id == bindparam("member"))
_ANY_BY_ID = MEMBERS.where(members.c.id.in_(bindparam("members", expanding=True)))
_STAYING = Query(
    select(members.c.component_key, members.c.allocation_id, members.c.state).where(
        members.c.instance_id == bindparam("instance"), members.c.state.not_in(LEAVING)
    ),
    PlacedRow,
)
_HIGHEST_ORDINAL = select(func.max(members.c.ordinal)).where(
    members.c.instance_id == bindparam("instance"), members.c.component_key == bindparam("component")
)
# Of an instance that exists, the members it has; of a deleted one, those it had.
_SHOWN = or_(
    and_(members.c.instance_id.in_(bindparam("existing", expanding=True)), members.c.state != "removed"),
    and_(members.c.instance_id.in_(bindparam("deleted", expanding=True)), members.c.state == "removed"),
)
_NUMBERED = (
    select(
        members.c.id,
        members.c.instance_id,
        members.c.state,
        func.row_number().over(partition_by=members.c.instance_id, order_by=members.c.id).label("number"),
    )
    .where(_SHOWN)
    .subquery("numbered")
)
_FIRST = (
    select(_NUMBERED.c.instance_id, _NUMBERED.c.id, _NUMBERED.c.state)
    .where(_NUMBERED.c.number <= bindparam("most"))
    .order_by(_NUMBERED.c.instance_id, _NUMBERED.c.id)
)
_FIRST_MEMBERS = MEMBERS.where(
    members.c.id.in_(select(_NUMBERED.c.id).where(_NUMBERED.c.number <= bindparam("most")))
).order_by(members.c.instance_id, members.c.id)
_COUNTS = (
    select(members.c.instance_id, members.c.component_key, members.c.state, func.count().label("count"))
    .where(_SHOWN)
    .group_by(members.c.instance_id, members.c.component_key, members.c.state)
    .order_by(members.c.instance_id, members.c.component_key, members.c.state)
)
_MANIFESTS: WeakKeyDictionary[Engine, dict[tuple[str, str], Manifest]] = WeakKeyDictionary()


def instance_row(tx: Connection, project_id: str, instance_id: str, *, lock: bool = False) -> InstanceRow:
    """Return the instance, or raise 404. `lock`: required before changing the instance, its members or its
    operations."""
    row = find_instance(tx, project_id, instance_id, lock=lock)
    if row is None:
        raise NotFound("There is no such instance in this project.")
    return row


def shown_instance(tx: Connection, project_id: str, instance_id: str) -> InstanceAndLastRow:
    """Return the instance with the kind and status of its newest operation, for a view; raise 404 if it does not
    exist."""
    row = _SHOWN_INSTANCE.first(tx, project=project_id, instance=instance_id)
    if row is None:
        raise NotFound("There is no such instance in this project.")
    return row


def instance_summary(tx: Connection, project_id: str, instance_id: str) -> InstanceSummary:
    row = _SUMMARY.first(tx, project=project_id, instance=instance_id)
    if row is None:
        raise NotFound("There is no such instance in this project.")
    return row


def find_instance(tx: Connection, project_id: str, instance_id: str, *, lock: bool = False) -> InstanceRow | None:
    return (_LOCKED_INSTANCE if lock else _INSTANCE).first(tx, project=project_id, instance=instance_id)


def try_instance_row(tx: Connection, project_id: str, instance_id: str) -> InstanceRow | None:
    """Lock and return the instance without waiting; None if another transaction has locked it, or if it does not
    exist."""
    return _UNLOCKED_INSTANCE.first(tx, project=project_id, instance=instance_id)


def known_instance(tx: Connection, instance_id: str) -> InstanceRow:
    """Return the instance with this id, in any project. The id must come from a stored row, for example of an
    operation."""
    return _BY_ID.one(tx, instance=instance_id)


def known_instances(tx: Connection, instance_ids: Collection[str]) -> dict[InstanceId, InstanceRow]:
    if len(instance_ids) > 1:
        return {row.id: row for row in _BY_IDS.all(tx, instances=list(instance_ids))}
    return {row.id: row for instance_id in instance_ids for row in _BY_ID.all(tx, instance=instance_id)}


def instance_names(tx: Connection, instance_ids: Sequence[str]) -> list[tuple[InstanceId, str]]:
    """Return id and name of the instances, sorted by name."""
    return [(InstanceId(row.id), row.name) for row in tx.execute(_NAMES, {"instances": list(instance_ids)})]


def running_names(tx: Connection, project_id: str, app_slug: str) -> list[str]:
    """Return the names of the app's instances in the project, except deleted instances."""
    return list(tx.execute(_RUNNING_NAMES, {"project": project_id, "app": app_slug}).scalars())


def instances_of(project_id: str, *, deleted: bool) -> Query[InstanceRow]:
    query = INSTANCES.where(instances.c.project_id == project_id)
    return query if deleted else query.where(instances.c.state != "deleted")


def work_row(tx: Connection, project_id: str, operation_id: str) -> Work:
    return work_of(operation_row(tx, project_id, operation_id))


def listed_members(instance_id: str, *, removed: bool = False) -> Query[ListedMember]:
    """Build the query for the current members of the instance, or with `removed` for its former members."""
    return (_LISTED_PAST if removed else _LISTED_PRESENT).bound(instance=instance_id)


def members_of(tx: Connection, instance_id: str, *, removed: bool = False) -> list[MemberRow]:
    return (_ORDERED_PAST if removed else _ORDERED_PRESENT).all(tx, instance=instance_id)


def some_members(tx: Connection, instance: InstanceRow, most: int) -> list[MemberRow]:
    """Return the first `most` members of the instance; for a deleted instance, its first former members."""
    first = _FIRST_PAST if instance.state == "deleted" else _FIRST_PRESENT
    return first.all(tx, instance=instance.id, most=most)


def members_by_id(tx: Connection, instance_id: str, member_ids: Collection[str]) -> dict[str, MemberRow]:
    """Return the members of the instance with these ids, current and former ones. Unknown ids are omitted."""
    if not member_ids:
        return {}
    return {row.id: row for row in _MEMBERS_BY_ID.all(tx, instance=instance_id, members=list(member_ids))}


def known_members(tx: Connection, member_ids: Collection[str]) -> dict[MemberId, MemberRow]:
    if len(member_ids) > 1:
        return {row.id: row for row in _ANY_BY_ID.all(tx, members=list(member_ids))}
    return {row.id: row for member_id in member_ids for row in _ANY_MEMBER.all(tx, member=member_id)}


def member_row(tx: Connection, instance_id: str, member_id: str) -> MemberRow:
    """Return a current or former member of the instance, or raise 404."""
    row = _MEMBER.first(tx, instance=instance_id, member=member_id)
    if row is None:
        raise NotFound("There is no such member in this instance.")
    return row


def next_ordinal(tx: Connection, instance_id: str, component: str) -> int:
    """Return the next number for a member of this component. A number is never reused, because host names may contain
    it."""
    highest = tx.execute(_HIGHEST_ORDINAL, {"instance": instance_id, "component": component}).scalar()
    return 0 if highest is None else highest + 1


@dataclass(frozen=True)
class MemberTotal:
    component_key: str
    state: str
    count: int


def _shown(rows: Iterable[InstanceRow]) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {"existing": [], "deleted": []}
    for row in rows:
        shown["deleted" if row.state == "deleted" else "existing"].append(row.id)
    return shown


def first_members(tx: Connection, rows: Iterable[InstanceRow], most: int) -> dict[InstanceId, list[MemberRow]]:
    """Return the first `most` members of each instance, with one statement; for a deleted instance, its former
    members."""
    found: dict[InstanceId, list[MemberRow]] = {}
    for member in _FIRST_MEMBERS.all(tx, **_shown(rows), most=most):
        found.setdefault(member.instance_id, []).append(member)
    return found


def first_states(tx: Connection, rows: Iterable[InstanceRow], most: int) -> dict[InstanceId, list[tuple[str, str]]]:
    """Return id and state of the first `most` members of each instance, with one statement; for a deleted instance,
    those of its former members."""
    found: dict[InstanceId, list[tuple[str, str]]] = {}
    for row in tx.execute(_FIRST, {**_shown(rows), "most": most}):
        found.setdefault(row.instance_id, []).append((row.id, row.state))
    return found


def member_totals(tx: Connection, rows: Iterable[InstanceRow]) -> dict[InstanceId, list[MemberTotal]]:
    found: dict[InstanceId, list[MemberTotal]] = {}
    for instance_id, component_key, state, count in tx.execute(_COUNTS, _shown(rows)):
        found.setdefault(instance_id, []).append(MemberTotal(component_key, state, count))
    return found


K = TypeVar("K")


def counts(things: Iterable[K]) -> Mapping[K, int]:
    """Count equal things; a thing that does not occur has the count 0. (For a few things `Counter` takes ten times as
    long.)"""
    found: defaultdict[K, int] = defaultdict(int)
    for thing in things:
        found[thing] += 1
    return found


class Placed(Protocol):
    @property
    def component_key(self) -> str: ...
    @property
    def allocation_id(self) -> str: ...
    @property
    def state(self) -> str: ...


@dataclass(frozen=True)
class Staying:
    """How many members per component, and per machine, are not being removed."""

    components: Mapping[str, int]
    machines: Mapping[str, int]

    @classmethod
    def of(cls, there: Iterable[Placed]) -> "Staying":
        staying = [one for one in there if one.state not in LEAVING]
        return cls(counts([one.component_key for one in staying]), counts([one.allocation_id for one in staying]))


def staying_in(tx: Connection, instance_id: str) -> Staying:
    return Staying.of(_STAYING.all(tx, instance=instance_id))


def live_operations(tx: Connection, instance_id: str) -> list[Work]:
    return [work_of(one) for one in live_of_lock(tx, instance_id)]


def live_of(tx: Connection, instance: InstanceRow | InstanceSummary) -> list[Work]:
    """Return the operations of the instance and its members that are under way. If the row shows that there are none,
    no query is sent."""
    idle = isinstance(instance, InstanceAndLastRow | InstanceSummary) and not instance.has_live
    return [] if idle else live_operations(tx, instance.id)


def live_of_instances(tx: Connection, rows: Sequence[InstanceRow]) -> Mapping[str, list[Work]]:
    if len(rows) == 1:
        return {rows[0].id: live_of(tx, rows[0])}
    found = live_of_locks(tx, [row.id for row in rows])
    return {key: [work_of(one) for one in live] for key, live in found.items()}


def last_operation(tx: Connection, instance: InstanceRow) -> Work | None:
    """Return the newest operation of the instance itself, not of its members; None if it has none."""
    found = find_operation(tx, instance.last_operation_id)
    return None if found is None else work_of(found)


def newest_operations(tx: Connection, rows: Iterable[InstanceRow]) -> dict[InstanceId, OutcomeRow]:
    """Return the kind and status of the newest operation of each instance. Instances without an operation are
    omitted."""
    newest: dict[InstanceId, OutcomeRow] = {}
    names: dict[InstanceId, OperationId] = {}
    for row in rows:
        if isinstance(row, InstanceAndLastRow):
            if row.last_operation_id and row.last_kind and row.last_status:
                newest[row.id] = OutcomeRow(row.last_operation_id, row.last_kind, row.last_status)
        elif row.last_operation_id is not None:
            names[row.id] = row.last_operation_id
    found = find_outcomes(tx, set(names.values()))
    return newest | {of: found[last] for of, last in names.items() if last in found}


class Versioned(Protocol):
    @property
    def app_slug(self) -> str: ...
    @property
    def version(self) -> str: ...


def manifest_of(tx: Connection, instance: Versioned) -> Manifest:
    """Return the manifest of the instance's version. It is cached per database, because the manifest of a version never
    changes."""
    known = _MANIFESTS.setdefault(tx.engine, {})
    key = (instance.app_slug, instance.version)
    if key not in known:
        known[key] = version_row(tx, *key).manifest
    return known[key]


def shown_holders(tx: Connection, instance_ids: Collection[str]) -> dict[str, UsedBy]:
    """Return id and name of each of these instances, for views that show which instance uses an allocation."""
    if not instance_ids:
        return {}
    named = select(instances.c.id, instances.c.name).where(instances.c.id.in_(instance_ids))
    return {row.id: UsedBy(instance_id=row.id, instance_name=row.name) for row in tx.execute(named)}
