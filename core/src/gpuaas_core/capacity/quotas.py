"""How much a project may hold. The row counts what is held, in the transaction that allocates: every addition locks it
until the end, so concurrent requests cannot exceed it together. Lock order: node, allocation, quota.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..authz.context import Context
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.wire import counted
from . import schemas
from .errors import QuotaExceeded
from .tables import quotas

declare({"capacity.quota.set": "What a project may hold at most was changed."})

_BOUNDS = {"allocations": "allocation", "gpus": "GPU"}  # the counted column, and its noun


def take(ctx: Context, project_id: str, *, allocations: int, gpus: int) -> None:
    """Count first, then compare: an excess is rolled back with the whole request."""
    row = _add(ctx.tx, project_id, allocations, gpus, ctx.now)
    asked = {"allocations": allocations, "gpus": gpus}
    for name, noun in _BOUNDS.items():
        used, most = getattr(row, f"used_{name}"), getattr(row, f"max_{name}")
        if most is not None and used > most:
            held = used - asked[name]
            figures = {"bound": name, "max": most, "used": held, "asked": asked[name]}
            sentence = f"The project may hold {counted(most, noun)}. It holds {held} and requested {asked[name]} more."
            raise QuotaExceeded(sentence, extra={"quota": figures})


def give_back(tx: Connection, project_id: str, gpus: int, now: int) -> None:
    _add(tx, project_id, -1, -gpus, now)


def set_quota(ctx: Context, project_id: str, body: schemas.SetQuota) -> schemas.QuotaView:
    """A quota below what is held releases nothing; it only prevents additions."""
    _add(ctx.tx, project_id, 0, 0, ctx.now)
    bounds = body.model_dump()
    ctx.tx.execute(update(quotas).where(quotas.c.project_id == project_id).values(**bounds, updated_at=ctx.now))
    ctx.resource_id = project_id
    ctx.emit("capacity.quota.set", project_id, bounds)
    return quota_view(ctx.tx, project_id)


def quota_view(tx: Connection, project_id: str) -> schemas.QuotaView:
    row = tx.execute(select(quotas).where(quotas.c.project_id == project_id)).first()
    if row is None:
        return schemas.QuotaView(project_id=project_id)
    return schemas.QuotaView.model_validate(row)


def _add(tx: Connection, project_id: str, allocations: int, gpus: int, now: int) -> Row[Any]:
    q = quotas.c
    first = {"project_id": project_id, "used_allocations": allocations, "used_gpus": gpus, "updated_at": now}
    again = {"used_allocations": q.used_allocations + allocations, "used_gpus": q.used_gpus + gpus}
    add = insert_into(tx, quotas).values(**first)
    return tx.execute(add.on_conflict_do_update(index_elements=[q.project_id], set_=again).returning(quotas)).one()
