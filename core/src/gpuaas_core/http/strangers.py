"""Audit of attempts to change resources that the caller may not see: the caller gets 404, the owning tenant an audit
row.

The row has the caller's id and kind, the permission and the resource, but nothing about the caller's own tenant. It is
written after the answer was sent, so that response times do not reveal whether the resource exists.

The number of rows is limited. For the same caller, permission and scope there is one row a minute; the next row states
how many attempts were omitted. All principals of one tenant together cause at most `MOST_PER_TENANT` rows a minute in
one trail. Both limits are counted per core process.
"""

from dataclasses import dataclass
from typing import TypeVar

from ..audit.audit_log import NOT_VISIBLE
from ..authz.evaluate import Principal, Scope

K = TypeVar("K")
REASON = NOT_VISIBLE
EVERY_MS = 60_000
MOST_PER_TENANT = 20
MOST_REMEMBERED = 10_000


@dataclass
class _Count:
    since: int
    rows: int = 0
    left_out: int = 0


class Strangers:
    def __init__(self) -> None:
        self._attempts: dict[tuple[str, str, str], _Count] = {}
        self._tenants: dict[tuple[str, str], _Count] = {}

    def reason(self, caller: Principal, permission: str, where: Scope, now: int) -> str | None:
        """Return the reason for the audit row of this attempt, or None if the limits allow no row for it."""
        attempt = _remembered(self._attempts, (caller.id, permission, where.id), now)
        tenant = _remembered(self._tenants, (caller.tenant_id or "", where.tenant_id or ""), now)
        if now - tenant.since >= EVERY_MS:
            tenant.since, tenant.rows = now, 0
        too_soon = attempt.rows > 0 and now - attempt.since < EVERY_MS
        if too_soon or tenant.rows >= MOST_PER_TENANT:
            attempt.left_out += 1
            return None
        left_out = attempt.left_out
        attempt.since, attempt.rows, attempt.left_out = now, 1, 0
        tenant.rows += 1
        return f"{REASON}; {left_out} more were not recorded since the last row" if left_out else REASON


def _remembered(counts: dict[K, _Count], key: K, now: int) -> _Count:
    if key not in counts and len(counts) >= MOST_REMEMBERED:
        del counts[next(iter(counts))]  # the oldest
    return counts.setdefault(key, _Count(now))
