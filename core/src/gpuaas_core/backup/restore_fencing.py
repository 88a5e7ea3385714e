"""What a restore must fence. Nodes, controllers, event readers and people may know newer state than the backup.

Event cursors become invalid. Controllers lose their claims, under epochs no host has seen. Nodes are untrusted until
they applied their full trust again. People sign in again, and no enrolment token works twice. New ids sort after all
ids issued since the backup.
"""

from typing import Any

from sqlalchemy import Connection

from ..audit import audit_log
from ..authz.context import Context
from ..authz.evaluate import Principal, Scope
from ..capacity import node_admin, service
from ..events.event_log import renew_store_epoch
from ..identity.sessions import end_all_sessions
from ..kit.correlation import correlate
from ..kit.ids import first_number
from ..kit.numbers import raise_number
from ..operations import claims

OPERATOR = Principal("operator", "operator", "the platform's operator")


def fence(tx: Connection, reason: str, now: int) -> dict[str, Any]:
    """Idempotent. Returns how many rows of each kind were fenced."""
    raise_number(tx, first_number(now))
    ctx = Context(tx, OPERATOR, Scope(), "platform.store.restore", correlate(None, None), now)
    renew_store_epoch(tx)
    done = {
        "operations": claims.fence_all(tx, now),
        "machines": node_admin.doubt_all(ctx),
        "sessions": end_all_sessions(tx),
        "enrolments": service.close_enrolments(tx, now),
    }
    ctx.flush(audited=False)
    audit_log.by_operator(tx, "platform.store.restore", reason, now)
    return done
