"""Revokes access grants before they expire: the host gets the serials of their certificates, rejects the certificates
and ends the sessions opened with them.

`revoke_stale` is called by a loop every second. It finds, by index, the live grants that must end: because of their
account, key or allocation, or because a registered purpose reports that their reason has ended.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, or_, select

from ..authz.context import Context
from ..capacity.reads import ALLOCATION_STATES, nodes_under
from ..capacity.trust import HOLDING, lock_nodes, next_generation
from ..iam.directory import ACCOUNTS
from ..identity.reads import KEY_STATES
from ..kit.rows import Query
from . import grants
from .purposes import registered
from .rows import Ended, GrantId, GrantRow


class _Unheld(NamedTuple):
    """A live grant whose account is disabled, whose key is retired, or whose allocation is released."""

    id: GrantId
    disabled_at: int | None
    retired_at: int | None


_live, _held = grants.LIVE.c, ALLOCATION_STATES.c.state
_UNHELD = Query(
    select(_live.id, ACCOUNTS.c.disabled_at, KEY_STATES.c.retired_at)
    .join(ACCOUNTS, ACCOUNTS.c.id == _live.principal_id)
    .join(ALLOCATION_STATES, ALLOCATION_STATES.c.id == _live.allocation_id)
    .outerjoin(KEY_STATES, KEY_STATES.c.id == _live.key_id)
    .where(or_(ACCOUNTS.c.disabled_at.is_not(None), KEY_STATES.c.retired_at.is_not(None), _held.not_in(HOLDING))),
    _Unheld,
)


def revoke(ctx: Context, rows: Sequence[GrantRow], reason: str) -> None:
    """Revoke grants for one reason. Their nodes are locked in a fixed order, so that two revocations cannot
    deadlock."""
    node_of = nodes_under(ctx.tx, {row.allocation_id for row in rows})
    for node_id in lock_nodes(ctx.tx, set(node_of.values())):
        mine = [row for row in rows if node_of.get(row.allocation_id) == node_id]
        grants.revoke(ctx, mine, reason, next_generation(ctx.tx, node_id))
        ctx.notify(f"node:{node_id}")


def end_on_allocation(ctx: Context, allocation_id: str, reason: str) -> None:
    """Revoke all live grants for the machine of this allocation."""
    revoke(ctx, grants.live_on(ctx.tx, allocation_id, ctx.now), reason)


def end_of_operation(ctx: Context, operation_id: str, reason: str) -> None:
    revoke(ctx, grants.live_of_operation(ctx.tx, operation_id, ctx.now), reason)


def on_release(ctx: Context, allocation_id: str, generation: int) -> None:
    """Revoke all grants of a released allocation, in the trust generation that also removes the SSH principal of the
    allocation."""
    rows = grants.live_on(ctx.tx, allocation_id, ctx.now)
    grants.revoke(ctx, rows, "its allocation was released", generation)


def any_stale(tx: Connection, now: int) -> bool:
    return any(True for _ in _ended(tx, now))


def revoke_stale(ctx: Context) -> int:
    """Revoke all live grants that must end, because of their account, key, allocation or purpose; return how many."""
    reason_of: dict[GrantId, str] = {}
    for ended in _ended(ctx.tx, ctx.now):
        reason_of.setdefault(ended.grant_id, ended.reason)
    by_reason: dict[str, list[GrantRow]] = {}
    for row in grants.live_by_id(ctx.tx, reason_of, ctx.now):
        by_reason.setdefault(reason_of[row.id], []).append(row)
    for reason, rows in by_reason.items():
        revoke(ctx, rows, reason)
    return len(reason_of)


def _ended(tx: Connection, now: int) -> Iterator[Ended]:
    """Iterate over the live grants that must end, each with the reason. A grant with several reasons occurs several
    times."""
    for unheld in _UNHELD.all(tx, now=now):
        if unheld.disabled_at is not None:
            yield Ended(unheld.id, "its account is disabled")
        elif unheld.retired_at is not None:
            yield Ended(unheld.id, "the key it was requested with is retired")
        else:
            yield Ended(unheld.id, "its allocation was released")
    for purpose in registered():
        yield from purpose.ended(tx, now)
