"""The book of access grants: which certificate was given to whom, for which operation, epoch and allocation.

A grant that is revoked stays in the book; until its certificate has expired on any clock, and the last session that it
may have opened for a person is over, its host is told its serial.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, or_, select, update

from ..access.context import Context
from ..access.evaluate import Scope
from ..kit.ids import new_id
from ..ledger.events import declare
from .authorities import Certificate
from .tables import access_grants

declare({"custody.access.revoked": "A certificate is good no more: its host refuses it and ends what it opened."})

SLOW_CLOCK_MS = 15 * 60 * 1000  # by which a host may be late without taking an expired certificate for a good one


def record(ctx: Context, certificate: Certificate, **of: Any) -> str:
    grant_id = new_id("grant")
    values = {
        "id": grant_id,
        "serial": certificate.serial,
        "user_authority": certificate.authority,
        "tenant_id": ctx.scope.tenant_id,
        "project_id": ctx.scope.project_id,
        "principal_id": ctx.principal.id,
        "key_id": ctx.principal.key_id,
        "expires_at": ctx.now + certificate.lives_s * 1000,
        "created_at": ctx.now,
    }
    ctx.tx.execute(insert(access_grants).values(**values, **of))
    return grant_id


def lasting(now: int) -> Any:
    """Whose certificate opens, or whose holder may still be in there."""
    return or_(access_grants.c.expires_at > now, access_grants.c.ends_at > now)


def live(now: int) -> Any:
    """With these a host can be entered, or has been."""
    return lasting(now) & access_grants.c.revoked_at.is_(None)


def over(row: Row[Any], now: int) -> bool:
    return max(row.expires_at, row.ends_at or 0) <= now


def opening_of(tenant_id: str, now: int) -> Select[Any]:
    """Those whose certificate is still shown to hosts: an open session asks for none any more."""
    g = access_grants.c
    return select(access_grants).where(g.tenant_id == tenant_id, g.expires_at > now, g.revoked_at.is_(None))


def revoked_serials(tx: Connection, allocation_ids: Select[Any], now: int) -> list[int]:
    """What hosts must still refuse by name: a certificate that has expired is refused anyway."""
    g = access_grants.c
    unexpired = lasting(now - SLOW_CLOCK_MS) & g.revoked_at.is_not(None)
    query = select(g.serial).where(unexpired, g.allocation_id.in_(allocation_ids))
    return list(tx.execute(query.order_by(g.serial)).scalars())


def revoke(ctx: Context, rows: Sequence[Row[Any]], reason: str, generation: int) -> None:
    """`generation`: of their machine's trust, the first that says so."""
    change = {"revoked_at": ctx.now, "revoke_reason": reason, "revoked_generation": generation}
    ctx.tx.execute(update(access_grants).where(access_grants.c.id.in_([row.id for row in rows])).values(**change))
    for row in rows:
        facts = {"grant_id": row.id, "operation_id": row.operation_id, "allocation_id": row.allocation_id}
        more = {"claim_epoch": row.claim_epoch, "reason": reason}
        where = Scope((("project", row.project_id),), tenant_id=row.tenant_id, project_id=row.project_id)
        ctx.emit("custody.access.revoked", row.id, facts | more, scope=where)
