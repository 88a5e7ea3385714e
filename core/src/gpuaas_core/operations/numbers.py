"""Numbers about operations for the metrics: operations by status, stuck operations by reason, the age of the queue, and
live claims."""

from sqlalchemy import Connection, bindparam, func, select

from .states import LIVE
from .tables import operations

_O = operations.c
_BY_STATUS = select(_O.status, func.count()).group_by(_O.status)
_STUCK = (
    select(_O.stuck_reason, func.count())
    .where(_O.stuck_reason.is_not(None), _O.status.in_(LIVE))
    .group_by(_O.stuck_reason)
)
_OLDEST = select(func.min(_O.created_at)).where(_O.status == "queued", _O.not_before <= bindparam("now"))
_CLAIMED = select(func.count()).where(_O.status == "running", _O.lease_expires_at > bindparam("now"))


def by_status(tx: Connection) -> dict[str, int]:
    return {status: count for status, count in tx.execute(_BY_STATUS)}


def stuck_by_reason(tx: Connection) -> dict[str, int]:
    return {reason: count for reason, count in tx.execute(_STUCK)}


def queue_age_ms(tx: Connection, now: int) -> int:
    """Return the age of the oldest claimable operation in milliseconds, or 0 if there is none."""
    oldest: int | None = tx.execute(_OLDEST, {"now": now}).scalar()
    return now - oldest if oldest is not None else 0


def live_claims(tx: Connection, now: int) -> int:
    return tx.execute(_CLAIMED, {"now": now}).scalar_one()
