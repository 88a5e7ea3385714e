"""Holds: one row per allocation in use, with its holder (e.g. an instance). The primary key prevents a second holder.

Holders belong to rooms above this one. Each of these rooms registers a reader that returns the views of its holders.
"""

from collections.abc import Callable, Collection
from functools import cache

from sqlalchemy import ColumnElement, Connection, bindparam, delete, exists, select

from ..kit.db import insert_of
from ..kit.rows import Command, Query
from .errors import AllocationInUse
from .rows import AllocationId, Holder, HoldRow
from .schemas import UsedBy
from .tables import allocation_holds

HolderReader = Callable[[Connection, Collection[str]], dict[str, UsedBy]]
_READERS: dict[str, HolderReader] = {}
_h = allocation_holds.c
_HOLDS = Query(
    select(allocation_holds).where(_h.allocation_id.in_(bindparam("allocations", expanding=True))), HoldRow
).order_by(_h.allocation_id)


def register(kind: str, reader: HolderReader) -> None:
    """Register the reader of a kind of holder. A reader maps the ids of holders to their views."""
    _READERS[kind] = reader


@cache
def _add(dialect: str) -> Command:
    """Build the INSERT of a hold, which writes nothing if the allocation has a holder."""
    columns = [column.name for column in allocation_holds.columns]
    return Command(insert_of(dialect, allocation_holds).on_conflict_do_nothing(), columns)


def hold(tx: Connection, allocation_ids: Collection[str], holder: Holder) -> bool:
    """Record that the holder uses all these allocations, and return True; return False if one of them is in use: the
    caller then rolls back. The caller has locked the allocations."""
    rows = [
        {"allocation_id": allocation, "holder_kind": holder.kind, "holder_id": holder.id}
        for allocation in sorted(allocation_ids)
    ]
    add = _add(tx.dialect.name)
    return all(add.run(tx, **row) for row in rows)


def release(tx: Connection, holder: Holder, *, keep: Collection[str] = ()) -> None:
    """Release all allocations of this holder except those in `keep`."""
    mine = (_h.holder_kind == holder.kind) & (_h.holder_id == holder.id)
    tx.execute(delete(allocation_holds).where(mine, _h.allocation_id.not_in(keep)))


def holders_of(tx: Connection, allocation_ids: Collection[str]) -> dict[AllocationId, Holder]:
    rows = _HOLDS.all(tx, allocations=list(allocation_ids))
    return {row.allocation_id: Holder(row.holder_kind, row.holder_id) for row in rows}


def used_by(tx: Connection, allocation_ids: Collection[str]) -> dict[AllocationId, UsedBy]:
    """Return the view of the holder of each allocation that is in use; unused allocations are left out."""
    holders = holders_of(tx, allocation_ids)
    shown = {
        (kind, holder_id): view
        for kind, reader in _READERS.items()
        for holder_id, view in reader(tx, {one.id for one in holders.values() if one.kind == kind}).items()
    }
    found = {allocation: shown.get((holder.kind, holder.id)) for allocation, holder in holders.items()}
    return {allocation: view for allocation, view in found.items() if view is not None}


def check_unused(tx: Connection, allocation_id: AllocationId) -> None:
    if user := used_by(tx, [allocation_id]).get(allocation_id):
        raise AllocationInUse(f"The instance {user.instance_name!r} is on this allocation.")


def held(allocation_id: ColumnElement[AllocationId] | ColumnElement[str]) -> ColumnElement[bool]:
    """Return the SQL condition that the allocation has a holder."""
    return exists().where(_h.allocation_id == allocation_id)


def held_by(allocation_id: ColumnElement[str], kind: str, holder_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the SQL condition that this holder uses the allocation."""
    return exists().where(_h.allocation_id == allocation_id, _h.holder_kind == kind, _h.holder_id == holder_id)
