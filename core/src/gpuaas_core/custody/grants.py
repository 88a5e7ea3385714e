"""The record of access grants: which certificate was issued to which principal, for which operation, epoch, allocation.

A revoked grant stays on record; its serial is sent to the host until its certificate has expired on any clock and the
last session a person may have opened with it has ended.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, or_, select, update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events.event_log import declare
from ..kit.ids import new_id
from .authorities import Certificate
from .tables import access_grants

declare({"custody.access.revoked": "Certificate revoked; the host rejects it and closes its sessions."})

SLOW_CLOCK_MS = 15 * 60 * 1000  # tolerated clock lag of a host, within which it might accept an expired certificate


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
    """Grants whose certificate is valid, or whose session may still be open."""
    return or_(access_grants.c.expires_at > now, access_grants.c.ends_at > now)


def live(now: int) -> Any:
    """Grants with which a host can be, or has been, entered."""
    return lasting(now) & access_grants.c.revoked_at.is_(None)


def over(row: Row[Any], now: int) -> bool:
    return max(row.expires_at, row.ends_at or 0) <= now


def opening_of(tenant_id: str, now: int) -> Select[Any]:
    """Grants whose certificate may still be presented to hosts; open sessions do not present it again."""
    g = access_grants.c
    return select(access_grants).where(g.tenant_id == tenant_id, g.expires_at > now, g.revoked_at.is_(None))


def revoked_serials(tx: Connection, allocation_ids: Select[Any], now: int) -> list[int]:
    """Serials that hosts must still reject; expired certificates are rejected anyway."""
    g = access_grants.c
    unexpired = lasting(now - SLOW_CLOCK_MS) & g.revoked_at.is_not(None)
    query = select(g.serial).where(unexpired, g.allocation_id.in_(allocation_ids))
    return list(tx.execute(query.order_by(g.serial)).scalars())


def revoke(ctx: Context, rows: Sequence[Row[Any]], reason: str, generation: int) -> None:
    """`generation`: the first trust generation of the node that contains the revocation."""
    change = {"revoked_at": ctx.now, "revoke_reason": reason, "revoked_generation": generation}
    ctx.tx.execute(update(access_grants).where(access_grants.c.id.in_([row.id for row in rows])).values(**change))
    for row in rows:
        facts = {"grant_id": row.id, "operation_id": row.operation_id, "allocation_id": row.allocation_id}
        more = {"claim_epoch": row.claim_epoch, "reason": reason}
        where = Scope((("project", row.project_id),), tenant_id=row.tenant_id, project_id=row.project_id)
        ctx.emit("custody.access.revoked", row.id, facts | more, scope=where)
