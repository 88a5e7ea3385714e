"""Access grants as people see them, and the end of those whose reason is gone.

A grant was given for an operation under one claim (or to look at a running instance while no operation changes it), to
a service account, for an allocation; or to a person, for a member's machine. `revoke_stale` looks at all that could
still be used, every second: however one of these ends, the grant ends too, and with it every session it opened. It does
not ask who ended it or which code did.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, and_, exists, or_, select

from ..authz.context import Context
from ..authz.rules import decide
from ..capacity.revocation import revoke as tell_host
from ..capacity.tables import allocations, nodes
from ..capacity.trust import HOLDING
from ..custody import grants
from ..custody.tables import access_grants
from ..iam.principals import principal_of, with_grants
from ..iam.tables import principals
from ..identity.tables import principal_keys
from ..kit.problems import NotFound
from ..operations.states import LIVE
from ..operations.tables import operations
from ..tenancy.reads import project_scope
from .access_schemas import AccessGrantView
from .certificates import OBSERVATION, PERSON
from .errors import GrantOver
from .reads import LEAVING
from .states import OF_MEMBER, REPLACE
from .tables import allocation_holds, instances, members

ENTER = "apps.access.enter"


def grants_of(project_id: str, now: int, *, revoked: bool) -> Select[Any]:
    """Those whose certificates have not expired; `revoked`: also those that open nothing any more."""
    g = access_grants.c
    usable = grants.lasting(now) if revoked else grants.live(now)
    return _with_names().where(g.project_id == project_id, usable)


def revoke(ctx: Context, project_id: str, grant_id: str, reason: str) -> AccessGrantView:
    held = _grant(ctx, project_id, grant_id)
    ctx.resource_id = grant_id
    if grants.over(held, ctx.now):
        raise GrantOver(f"The certificate of {grant_id!r} has expired.")
    if held.revoked_at is None:
        tell_host(ctx, [held], reason)
    return view(_grant(ctx, project_id, grant_id))


def revoke_stale(ctx: Context) -> int:
    """Called by a loop. Returns how many there were."""
    by_reason: dict[str, list[Row[Any]]] = {}
    for row in ctx.tx.execute(_usable(ctx.now)).all():
        if reason := _gone(ctx.tx, row, ctx.now):
            by_reason.setdefault(reason, []).append(row)
    for reason, rows in by_reason.items():
        tell_host(ctx, rows, reason)
    return sum(len(rows) for rows in by_reason.values())


def any_stale(tx: Connection, now: int) -> bool:
    return any(_gone(tx, row, now) for row in tx.execute(_usable(now)).all())


def _usable(now: int) -> Select[Any]:
    """With what they were given for."""
    o, g, a = operations.c, access_grants.c, allocations.c
    entered = members.alias("entered")  # not the members that `worked_on` asks for
    query = (
        select(
            access_grants,
            o.status,
            o.claim_epoch.label("epoch_now"),
            instances.c.state.label("instance_state"),
            (instances.c.last_operation_id == o.id).label("newest"),
            (allocation_holds.c.instance_id == o.lock_key).label("held"),
            worked_on(g.allocation_id).label("worked_on"),
            entered.c.state.label("member_state"),
            a.state.label("allocation_state"),
            principals.c.disabled_at,
            principal_keys.c.retired_at,
        )
        .join(operations, o.id == g.operation_id)
        .join(instances, instances.c.id == o.lock_key)
        .outerjoin(allocation_holds, allocation_holds.c.allocation_id == g.allocation_id)
        .join(allocations, a.id == g.allocation_id)
        .join(principals, principals.c.id == g.principal_id)
        .outerjoin(principal_keys, principal_keys.c.id == g.key_id)
        .outerjoin(entered, entered.c.id == g.member_id)
        .where(grants.live(now))
    )
    return query.order_by(g.id)


def worked_on(allocation_id: Any) -> Any:
    """An operation of a member on this allocation waits or runs."""
    m, o = members.c, operations.alias("work").c  # not the operation that a query around this one asks for
    new = members.alias("new").c
    replaced = exists().where(new.id == o.target_id, new.replaces == m.id, o.kind == REPLACE)
    of_member = and_(o.target_kind == OF_MEMBER, or_(o.target_id == m.id, replaced))
    return exists().where(m.allocation_id == allocation_id, m.state != "removed", of_member, o.status.in_(LIVE))


def _gone(tx: Connection, row: Row[Any], now: int) -> str | None:
    """Why it should not be good any more: the first reason that holds."""
    if row.purpose == PERSON:
        return _unwelcome(tx, row, now)
    if row.purpose == OBSERVATION:
        return _unobservable(row) or _without_holder(row)
    if row.epoch_now != row.claim_epoch:
        return "a newer claim holds its operation"
    if row.status != "running":
        return "nobody holds its operation any more"
    return _without_holder(row)


def _unobservable(row: Row[Any]) -> str | None:
    if row.instance_state != "running" or not row.newest or row.epoch_now != row.claim_epoch:
        return "an operation changes the instance it was given to look at"
    if row.worked_on:
        return "an operation works on its machine"
    return None if row.held else "its machine is no longer part of the instance"


def _unwelcome(tx: Connection, row: Row[Any], now: int) -> str | None:
    if row.member_state in LEAVING:
        return "the member leaves its machine"
    if not row.held:
        return "its machine is no longer part of the instance"
    return _without_holder(row) or _without_right(tx, row, now)


def _without_right(tx: Connection, row: Row[Any], now: int) -> str | None:
    who = tx.execute(select(principals).where(principals.c.id == row.principal_id)).one()
    holder = with_grants(tx, principal_of(tx, who), now)
    if decide(tx, holder, ENTER, project_scope(tx, row.project_id)).allowed:
        return None
    return "whoever asked for it may not enter machines any more"


def _without_holder(row: Row[Any]) -> str | None:
    if row.disabled_at is not None:
        return "its holder is disabled" if row.purpose == PERSON else "its service account is disabled"
    if row.retired_at is not None:
        return "the key it was asked for with is retired"
    return None if row.allocation_state in HOLDING else "its allocation is given back"


def _grant(ctx: Context, project_id: str, grant_id: str) -> Row[Any]:
    mine = (access_grants.c.project_id == project_id) & (access_grants.c.id == grant_id)
    row = ctx.tx.execute(_with_names().where(mine).with_for_update(of=access_grants)).first()
    if row is None:
        raise NotFound("There is no such access grant in this project.")
    return row


def _with_names() -> Select[Any]:
    g = access_grants.c
    names = (
        nodes.c.id.label("node_id"),
        nodes.c.name.label("node_name"),
        nodes.c.trust_applied,
        principals.c.name.label("principal_name"),
    )
    query = select(access_grants, *names).join(allocations, allocations.c.id == g.allocation_id)
    query = query.join(nodes, nodes.c.id == allocations.c.node_id)
    return query.join(principals, principals.c.id == g.principal_id)


def view(row: Row[Any]) -> AccessGrantView:
    enforced = row.revoked_generation is not None and row.trust_applied >= row.revoked_generation
    addresses = row.source_addresses.split(",") if row.source_addresses else []
    shown = {"serial": str(row.serial), "source_addresses": addresses, "enforced": enforced}
    return AccessGrantView.model_validate(dict(row._mapping) | shown)
