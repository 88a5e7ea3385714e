"""Rotation of SSH authorities without downtime. Called by the routes, and every second by a loop.

Three steps, each taken when it locks out no host or client (or on an operator's `finish` with force):
`rotate` creates the next authority, trusted beside the old one; it is activated and signs once all hosts (user
authority) or all clients that may still connect (host authority) trust it; the old one is retired, and its private key
destroyed, when nothing it signed is in use.
"""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..custody import authorities, grants
from ..custody.authorities import HOST, USER
from ..custody.states import ACTIVATE, ACTIVE, NEXT, REPLACE, RETIRE, RETIRING
from ..custody.tables import access_grants
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.problems import NotFound
from . import schemas
from .errors import AuthorityInUse, AuthorityRotates
from .host_certificates import certify
from .tables import nodes
from .trust import next_authority_generation

declare(
    {
        "custody.authority.rotation_started": "The next SSH authority is trusted but does not sign yet.",
        "custody.authority.activated": "An SSH authority signs from now on; the previous one is still trusted.",
        "custody.authority.retired": "An SSH authority is no longer trusted, and its private key was destroyed.",
    }
)

MOST_NAMED = 100
DEAD = ("retired", "lost")  # nodes a rotation does not wait for


def rotate(ctx: Context, vault: Vault, tenant_id: str, purpose: str) -> schemas.AuthoritiesView:
    trusted = authorities.trusted(ctx.tx, tenant_id, purpose, lock=True)
    known = authorities.numbers(ctx.tx, tenant_id, purpose)
    if not known:
        raise NotFound("The tenant has no SSH authorities. They are created when it enrols its first node.")
    if moving := _moving(trusted):
        raise AuthorityRotates(f"The {purpose} authority {moving.number} is being rotated ({moving.state}).")
    authorities.add(ctx.tx, vault, tenant_id, purpose, known[-1] + 1, NEXT, ctx.now)
    ctx.resource_id = f"{purpose}/{known[-1] + 1}"
    _emit(ctx, authorities.trusted(ctx.tx, tenant_id, purpose)[-1], "rotation_started")
    if purpose == USER:
        _tell_hosts(ctx, tenant_id)
    return view(ctx.tx, tenant_id, ctx.now)


def finish(ctx: Context, vault: Vault, tenant_id: str, purpose: str, *, force: bool) -> schemas.AuthoritiesView:
    """Take the next step unless it locks out hosts or clients that lag; `force` takes it anyway."""
    moving = _moving(authorities.trusted(ctx.tx, tenant_id, purpose, lock=True))
    if moving is None:
        raise NotFound(f"The tenant has no rotation of its {purpose} authority in progress.")
    ctx.resource_id = f"{purpose}/{moving.number}"
    waits = _waits_for(ctx.tx, moving, ctx.now)
    if waits and not force:
        raise AuthorityInUse(_lagging(waits), extra={"waits_for": waits})
    _step(ctx, vault, moving)
    return view(ctx.tx, tenant_id, ctx.now)


def go_on(ctx: Context, vault: Vault) -> None:
    """Called by the loop: every rotation that waits for no host or grant takes its next step."""
    for tenant_id, purpose in authorities.under_way(ctx.tx):
        moving = _moving(authorities.trusted(ctx.tx, tenant_id, purpose, lock=True))
        if moving and not _waits_for(ctx.tx, moving, ctx.now):
            _step(ctx, vault, moving, Scope((("tenant", tenant_id), PLATFORM), tenant_id=tenant_id))


def view(tx: Connection, tenant_id: str, now: int) -> schemas.AuthoritiesView:
    rows = authorities.all_of(tx, tenant_id)
    return schemas.AuthoritiesView(items=[_view(tx, row, now) for row in rows])


def _view(tx: Connection, row: Row[Any], now: int) -> schemas.AuthorityView:
    facts = {key: value for key, value in row._mapping.items() if key != "sealed_private_key"}
    more = {"fingerprint": authorities.fingerprint(row.public_key), "waits_for": _waits_for(tx, row, now)}
    return schemas.AuthorityView.model_validate(facts | more)


def _step(ctx: Context, vault: Vault, row: Row[Any], scope: Scope | None = None) -> None:
    if row.state == NEXT:
        authorities.move(ctx.tx, authorities.signing(ctx.tx, row.tenant_id, row.purpose), REPLACE, ctx.now)
        authorities.move(ctx.tx, row, ACTIVATE, ctx.now)
        _emit(ctx, row, "activated", scope)
        if row.purpose == HOST:
            certify(ctx, vault, nodes.c.tenant_id == row.tenant_id)
    else:
        authorities.move(ctx.tx, row, RETIRE, ctx.now)
        _emit(ctx, row, "retired", scope)
        if row.purpose == USER:
            _tell_hosts(ctx, row.tenant_id)


def _waits_for(tx: Connection, row: Row[Any], now: int) -> list[str]:
    """Names of nodes and ids of access grants that the next step would lock out."""
    g = access_grants.c
    live = grants.opening_of(row.tenant_id, now).with_only_columns(g.id).order_by(g.id).limit(MOST_NAMED)
    behind = _living(row.tenant_id).where(nodes.c.trust_applied < nodes.c.authority_generation)
    lag = {
        (USER, NEXT): behind,
        (USER, RETIRING): live.where(g.user_authority == row.number),
        (HOST, NEXT): live.where(g.host_authority < row.number),
        (HOST, RETIRING): behind,
    }.get((row.purpose, row.state))
    return [] if lag is None else list(tx.execute(lag).scalars())


def _living(tenant_id: str) -> Any:
    mine = select(nodes.c.name).where(nodes.c.tenant_id == tenant_id, nodes.c.state.not_in(DEAD))
    return mine.order_by(nodes.c.name, nodes.c.id).limit(MOST_NAMED)


def _lagging(names: list[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"Still in use by, or not yet trusted by: {shown}."


def _tell_hosts(ctx: Context, tenant_id: str) -> None:
    mine = select(nodes.c.id).where(nodes.c.tenant_id == tenant_id, nodes.c.state != "retired")
    for node in ctx.tx.execute(mine.order_by(nodes.c.name, nodes.c.id).with_for_update(key_share=True)).all():
        next_authority_generation(ctx.tx, node.id)
        ctx.notify(f"node:{node.id}")


def _moving(trusted: list[Row[Any]]) -> Row[Any] | None:
    """At most one per purpose: a rotation starts only after the previous one ended."""
    return next((row for row in trusted if row.state != ACTIVE), None)


def _emit(ctx: Context, row: Row[Any], what: str, scope: Scope | None = None) -> None:
    facts = {"purpose": row.purpose, "authority_number": row.number}
    facts |= {"fingerprint": authorities.fingerprint(row.public_key)}
    ctx.emit(f"custody.authority.{what}", f"{row.purpose}/{row.number}", facts, scope=scope)
