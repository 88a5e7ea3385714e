"""Quotas of projects. A project's row counts its allocations and GPUs. The row is updated in the transaction that
allocates and stays locked until the end, so concurrent requests cannot exceed the quota together. Lock order: node,
allocation, quota."""

from sqlalchemy import Connection, bindparam, select, update

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.rows import Query
from ..kit.wire import counted
from . import schemas
from .errors import QuotaExceeded
from .rows import QuotaRow
from .tables import quotas

declare({"capacity.quota.set": "The quota of a project was changed."})

_QUOTA = Query(select(quotas), QuotaRow).where(quotas.c.project_id == bindparam("project"))


def take(ctx: Context, project_id: str, *, allocations: int, gpus: int) -> None:
    """Add to the project's usage. Raises QuotaExceeded if the quota is exceeded then,
    which rolls back the whole request."""
    row = _add(ctx.tx, project_id, allocations, gpus, ctx.now)
    bounds = (
        ("allocations", "allocation", allocations, row.used_allocations, row.max_allocations),
        ("gpus", "GPU", gpus, row.used_gpus, row.max_gpus),
    )
    for name, noun, asked, used, most in bounds:
        if most is not None and used > most:
            figures = {"bound": name, "max": most, "used": used - asked, "asked": asked}
            sentence = (
                f"The project may hold {counted(most, noun)}. It holds {used - asked} and requested {asked} more."
            )
            raise QuotaExceeded(sentence, extra={"quota": figures})


def give_back(tx: Connection, project_id: str, gpus: int, now: int) -> None:
    _add(tx, project_id, -1, -gpus, now)


def set_quota(ctx: Context, project_id: str, body: schemas.SetQuota) -> schemas.QuotaView:
    """Set the quota. A quota below the current usage releases nothing; it only prevents new allocations."""
    _add(ctx.tx, project_id, 0, 0, ctx.now)
    bounds = body.model_dump()
    ctx.tx.execute(update(quotas).where(quotas.c.project_id == project_id).values(**bounds, updated_at=ctx.now))
    ctx.resource_id = project_id
    ctx.emit("capacity.quota.set", project_id, bounds)
    return quota_view(ctx.tx, project_id)


def quota_view(tx: Connection, project_id: str) -> schemas.QuotaView:
    row = _QUOTA.first(tx, project=project_id)
    if row is None:
        return schemas.QuotaView(project_id=project_id)
    return schemas.QuotaView.model_validate(row)


def _add(tx: Connection, project_id: str, allocations: int, gpus: int, now: int) -> QuotaRow:
    q = quotas.c
    first = {"project_id": project_id, "used_allocations": allocations, "used_gpus": gpus, "updated_at": now}
    again = {"used_allocations": q.used_allocations + allocations, "used_gpus": q.used_gpus + gpus}
    add = insert_into(tx, quotas).values(**first)
    added = add.on_conflict_do_update(index_elements=[q.project_id], set_=again).returning(quotas)
    return QuotaRow(*tx.execute(added).one())
