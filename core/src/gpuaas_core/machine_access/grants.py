"""The record of access grants: which certificate was issued to which principal, for which allocation and purpose.

A revoked grant stays on record. Its serial is sent to the host until the certificate has expired, even by a slow clock,
and the last session that a person may have opened with it has ended. Grants are deleted 30 days after they ended.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import BindParameter, ColumnElement, Connection, bindparam, insert, or_, select, update

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..capacity.reads import on_node
from ..events.event_log import declare
from ..kit.db import delete_some
from ..kit.ids import new_id
from ..kit.rows import Query
from .rows import Certificate, GrantId, GrantRow, Reason
from .tables import access_grants

declare(
    {
        "custody.access.revoked": (
            "An SSH certificate was revoked; the host rejects the certificate and ends the sessions opened with it."
        )
    }
)

SLOW_CLOCK_MS = 15 * 60 * 1000  # tolerated clock lag of a host, within which it might accept an expired certificate
KEPT_MS = 30 * 24 * 3600 * 1000
DAY_MS = 24 * 3600 * 1000

_g = access_grants.c
_NOW: BindParameter[int] = bindparam("now")
LASTING = or_(_g.expires_at > _NOW, _g.ends_at > _NOW)  # the certificate is valid, or a session may still be open
IS_LIVE = LASTING & _g.revoked_at.is_(None)  # a host can be, or has been, entered with it
GRANTS = Query(select(access_grants), GrantRow)
LIVE = select(access_grants).where(IS_LIVE).subquery("live_grants")  # for purposes: takes the parameter `now`

_LIVE_ON = GRANTS.where(_g.allocation_id == bindparam("allocation"), IS_LIVE).order_by(_g.id)
_LIVE_OF_OPERATION = GRANTS.where(_g.operation_id == bindparam("operation"), IS_LIVE).order_by(_g.id)
_BY_ID = GRANTS.where(_g.id.in_(bindparam("ids", expanding=True)), IS_LIVE).order_by(_g.id)
_SAME_DAY = (
    select(_g.id)
    .where(
        _g.allocation_id == bindparam("allocation"),
        _g.principal_id == bindparam("principal"),
        _g.purpose == bindparam("purpose"),
        _g.expires_at >= bindparam("since"),
        _g.created_at >= bindparam("since"),
    )
    .limit(1)
)


def record(
    ctx: Context,
    certificate: Certificate,
    reason: Reason,
    *,
    allocation_id: str,
    host_authority: int,
    source_addresses: Collection[str],
    ends_at: int | None = None,
) -> GrantId:
    grant_id = GrantId(new_id("grant"))
    ctx.tx.execute(
        insert(access_grants).values(
            id=grant_id,
            serial=certificate.serial,
            tenant_id=ctx.scope.tenant_id,
            project_id=ctx.scope.project_id,
            operation_id=reason.operation_id,
            claim_epoch=reason.claim_epoch,
            allocation_id=allocation_id,
            principal_id=ctx.principal.id,
            key_id=ctx.principal.key_id,
            user_authority=certificate.authority,
            host_authority=host_authority,
            source_addresses=",".join(source_addresses) or None,
            purpose=reason.purpose,
            subject_kind=reason.subject_kind,
            subject_id=reason.subject_id,
            expires_at=ctx.now + certificate.lives_s * 1000,
            ends_at=ends_at,
            created_at=ctx.now,
        )
    )
    return grant_id


def first_today(ctx: Context, allocation_id: str, purpose: str) -> bool:
    """Return True if the caller has had no grant of this purpose on this allocation since midnight UTC."""
    since = ctx.now - ctx.now % DAY_MS
    values = {"allocation": allocation_id, "principal": ctx.principal.id, "purpose": purpose, "since": since}
    return ctx.tx.execute(_SAME_DAY, values).first() is None


def live_on(tx: Connection, allocation_id: str, now: int) -> list[GrantRow]:
    return _LIVE_ON.all(tx, allocation=allocation_id, now=now)


def live_of_operation(tx: Connection, operation_id: str, now: int) -> list[GrantRow]:
    return _LIVE_OF_OPERATION.all(tx, operation=operation_id, now=now)


def live_by_id(tx: Connection, ids: Collection[GrantId], now: int) -> list[GrantRow]:
    return _BY_ID.all(tx, ids=list(ids), now=now)


def over(row: GrantRow, now: int) -> bool:
    return max(row.expires_at, row.ends_at or 0) <= now


def opening(tenant_id: str, now: int, *which: ColumnElement[bool]) -> Query[GrantRow]:
    """Build the query for grants that are not revoked and whose certificate is still valid. Grants with an expired
    certificate are left out even if a session is open, because the session does not present the certificate again."""
    return GRANTS.where(_g.tenant_id == tenant_id, _g.expires_at > now, _g.revoked_at.is_(None), *which)


def revoked_serials(tx: Connection, node_id: str, now: int) -> list[int]:
    """Return the serials of revoked certificates that the node must still reject. Certificates that have expired by any
    clock are left out, because hosts reject them anyway."""
    unexpired = or_(_g.expires_at > now - SLOW_CLOCK_MS, _g.ends_at > now - SLOW_CLOCK_MS)
    query = select(_g.serial).where(unexpired, _g.revoked_at.is_not(None), _g.allocation_id.in_(on_node(node_id)))
    return list(tx.execute(query.order_by(_g.serial)).scalars())


def revoke(ctx: Context, rows: Sequence[GrantRow], reason: str, generation: int) -> None:
    """Mark the grants as revoked. `generation` is the first trust generation of the node that contains the
    revocation."""
    change = {"revoked_at": ctx.now, "revoke_reason": reason, "revoked_generation": generation}
    ctx.tx.execute(update(access_grants).where(_g.id.in_([row.id for row in rows])).values(**change))
    for row in rows:
        facts = {"grant_id": row.id, "operation_id": row.operation_id, "allocation_id": row.allocation_id}
        more = {"claim_epoch": row.claim_epoch, "reason": reason}
        where = Scope((("project", row.project_id),), tenant_id=row.tenant_id, project_id=row.project_id)
        ctx.emit("custody.access.revoked", row.id, facts | more, scope=where)


def delete_ended(tx: Connection, now: int) -> int:
    """Delete the grants that ended more than 30 days ago; return how many. Called by housekeeping."""
    before = now - KEPT_MS
    return delete_some(tx, access_grants, (_g.expires_at < before) & or_(_g.ends_at.is_(None), _g.ends_at < before))
