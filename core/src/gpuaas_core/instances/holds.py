"""Holds: a row per allocation in use. They come with members and go when the last member there is gone."""

from typing import Any

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..capacity.errors import AllocationInUse
from .placement import Placement
from .tables import allocation_holds, instances, members


def hold(ctx: Context, instance: Row[Any], placement: Placement, found: dict[str, Row[Any]]) -> None:
    wanted = sorted({allocation for chosen in placement.values() for allocation in chosen})
    rows = [{"allocation_id": allocation, "instance_id": instance.id} for allocation in wanted]
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(allocation_holds), rows)
    except IntegrityError as error:
        names = ", ".join(found[allocation].name for allocation in wanted)
        raise AllocationInUse(f"Another instance took one of {names} a moment ago.") from error


def release_unused(ctx: Context, instance_id: str) -> None:
    """Every allocation of the instance on which no member is any more."""
    there = select(members.c.allocation_id).where(members.c.instance_id == instance_id, members.c.state != "removed")
    h = allocation_holds.c
    ctx.tx.execute(delete(allocation_holds).where(h.instance_id == instance_id, h.allocation_id.not_in(there)))


def check_not_in_use(ctx: Context, allocation_id: str) -> None:
    held = select(instances.c.name).join(allocation_holds, allocation_holds.c.instance_id == instances.c.id)
    name = ctx.tx.execute(held.where(allocation_holds.c.allocation_id == allocation_id)).scalar()
    if name:
        raise AllocationInUse(f"The instance {name!r} is on this allocation.")
