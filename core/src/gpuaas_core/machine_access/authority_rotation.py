"""Rotation of SSH authorities without downtime. Called by the routes, and every second by a loop.

A rotation has three steps. The second and third are taken as soon as they lock out no host or client, or at once by
`finish` with `force`:
1. `rotate` creates the next authority, which is trusted beside the old one.
2. The next authority is activated and signs, once all hosts (for a user authority) or all clients that may still
   connect (for a host authority) trust it.
3. The old authority is retired and its private key destroyed, once nothing that it signed is in use.
"""

from collections.abc import Callable

from sqlalchemy import ColumnElement, Connection

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..capacity.trust import behind, lock_living, next_authority_generation
from ..custody.vault import Vault
from ..events.event_log import declare
from ..kit.problems import NotFound
from . import authorities, grants, schemas
from .authorities import HOST, USER
from .errors import AuthorityInUse, AuthorityRotates
from .host_certificates import renew_all
from .purposes import renewable
from .revocation import revoke
from .rows import AuthorityRow
from .states import ACTIVATE, ACTIVE, NEXT, REPLACE, RETIRE, RETIRING
from .tables import access_grants

declare(
    {
        "custody.authority.rotation_started": (
            "A rotation of an SSH authority was started: the next authority is trusted but does not sign yet."
        ),
        "custody.authority.activated": (
            "An SSH authority was activated for signing. The previous authority is still trusted."
        ),
        "custody.authority.retired": (
            "An SSH authority was retired: it is no longer trusted, and its private key was destroyed."
        ),
    }
)

MOST_NAMED = 100
# The grants that a step would lock out, by the purpose and state of the authority that takes it.
_LAGGING: dict[tuple[str, str], Callable[[int], ColumnElement[bool]]] = {
    (USER, RETIRING): lambda number: access_grants.c.user_authority == number,
    (HOST, NEXT): lambda number: access_grants.c.host_authority < number,
}


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
    """Take the next step of a rotation; raise 404 if none is in progress. Raises AuthorityInUse if the step would lock
    out hosts or clients, unless `force` is set."""
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
    """Take the next step of every rotation that need not wait for a host or an access grant. Called by the loop."""
    for tenant_id, purpose in authorities.under_way(ctx.tx):
        moving = _moving(authorities.trusted(ctx.tx, tenant_id, purpose, lock=True))
        if moving and not _waits_for(ctx.tx, moving, ctx.now):
            _step(ctx, vault, moving, Scope((("tenant", tenant_id), PLATFORM), tenant_id=tenant_id))


def view(tx: Connection, tenant_id: str, now: int) -> schemas.AuthoritiesView:
    rows = authorities.all_of(tx, tenant_id)
    return schemas.AuthoritiesView(items=[_view(tx, row, now) for row in rows])


def _view(tx: Connection, row: AuthorityRow, now: int) -> schemas.AuthorityView:
    facts = {key: value for key, value in vars(row).items() if key != "sealed_private_key"}
    more = {"fingerprint": authorities.fingerprint(row.public_key), "waits_for": _waits_for(tx, row, now)}
    return schemas.AuthorityView.model_validate(facts | more)


def _step(ctx: Context, vault: Vault, row: AuthorityRow, scope: Scope | None = None) -> None:
    _end_renewable(ctx, row)
    if row.state == NEXT:
        authorities.move(ctx.tx, authorities.signing(ctx.tx, row.tenant_id, row.purpose), REPLACE, ctx.now)
        authorities.move(ctx.tx, row, ACTIVATE, ctx.now)
        _emit(ctx, row, "activated", scope)
        if row.purpose == HOST:
            renew_all(ctx, vault, row.tenant_id)
    else:
        authorities.move(ctx.tx, row, RETIRE, ctx.now)
        _emit(ctx, row, "retired", scope)
        if row.purpose == USER:
            _tell_hosts(ctx, row.tenant_id)


def _waits_for(tx: Connection, row: AuthorityRow, now: int) -> list[str]:
    """Return the names of nodes and the ids of access grants that the next step would lock out, at most 100."""
    if (row.purpose, row.state) in ((USER, NEXT), (HOST, RETIRING)):
        return behind(tx, row.tenant_id, MOST_NAMED)
    lagging = _LAGGING.get((row.purpose, row.state))
    if lagging is None:
        return []
    waits = access_grants.c.purpose.not_in(renewable())
    rows = grants.opening(row.tenant_id, now, lagging(row.number), waits).order_by(access_grants.c.id)
    return [grant.id for grant in rows.limit(MOST_NAMED).all(tx)]


def _end_renewable(ctx: Context, row: AuthorityRow) -> None:
    """Revoke the grants that their holders can renew at any time, so that the rotation does not wait for these
    grants."""
    lagging = _LAGGING.get((row.purpose, row.state))
    if lagging is None:
        return
    rows = grants.opening(row.tenant_id, ctx.now, lagging(row.number), access_grants.c.purpose.in_(renewable()))
    revoke(ctx, rows.order_by(access_grants.c.id).all(ctx.tx), "an SSH authority is rotated")


def _lagging(names: list[str]) -> str:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"Still in use by, or not yet trusted by: {shown}."


def _tell_hosts(ctx: Context, tenant_id: str) -> None:
    for node in lock_living(ctx.tx, tenant_id):
        next_authority_generation(ctx.tx, node.id)
        ctx.notify(f"node:{node.id}")


def _moving(trusted: list[AuthorityRow]) -> AuthorityRow | None:
    """Return the authority that is `next` or `retiring`, or None if no rotation is in progress. There is at most
    one."""
    return next((row for row in trusted if row.state != ACTIVE), None)


def _emit(ctx: Context, row: AuthorityRow, what: str, scope: Scope | None = None) -> None:
    facts = {"purpose": row.purpose, "authority_number": row.number}
    facts |= {"fingerprint": authorities.fingerprint(row.public_key)}
    ctx.emit(f"custody.authority.{what}", f"{row.purpose}/{row.number}", facts, scope=scope)
