"""Fences stale state after a restore, because nodes, controllers,
event readers and people may have seen newer state than the backup has.

Event cursors become invalid. Controllers lose their claims, and new claim epochs are higher than any that a host has
seen. Nodes are not trusted until they have applied their full trust configuration again. People must sign in again, and
open enrolment tokens become invalid. New ids sort after all ids issued since the backup.
"""

from sqlalchemy import Connection

from ..audit import audit_log
from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..authz.ids import PrincipalId
from ..capacity import silence
from ..enrolment import service as enrolment
from ..events.event_log import renew_store_epoch
from ..identity.sessions import end_all_sessions
from ..kit.correlation import correlate
from ..kit.ids import first_number
from ..kit.numbers import raise_number
from ..operations import claims

OPERATOR = Principal(PrincipalId("operator"), "operator", "the platform's operator")


def fence(tx: Connection, reason: str, now: int) -> dict[str, int]:
    """Fence all stale state, and return the number of fenced rows of each kind. Idempotent."""
    raise_number(tx, first_number(now))
    ctx = Context(tx, OPERATOR, Scope(), "platform.store.restore", correlate(None, None), now)
    renew_store_epoch(tx)
    done = {
        "operations": claims.fence_all(tx, now),
        "machines": silence.doubt_all(ctx),
        "sessions": end_all_sessions(tx),
        "enrolments": enrolment.close_enrolments(tx, now),
    }
    ctx.flush(audited=False)
    audit_log.by_operator(tx, "platform.store.restore", reason, now)
    return done
