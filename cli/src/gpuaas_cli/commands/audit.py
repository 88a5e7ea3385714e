"""`gpuaas audit list|verify`: the audit trail of a tenant, and a check that it was not altered."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from .. import failures, show
from ..options import Looking, Tenant
from ..session import session

if TYPE_CHECKING:
    from gpuaas_sdk import Client
    from gpuaas_sdk.client.models import AuditView

app = App(name="audit", help="List the audit trail, and verify that it was not altered.")
PAGE = 1000


@app.command(name="list")
def list_audit(
    *,
    tenant: Tenant = None,
    actor: str | None = None,
    permission: str | None = None,
    outcome: Literal["allowed", "denied"] | None = None,
    correlation: str | None = None,
    after: int = 0,
    limit: int = 200,
    common: Looking = Looking(),
) -> None:
    """List the newest rows of the audit trail, oldest first. With --project, list only rows of that project.

    Example: gpuaas audit list --outcome denied
    Example: gpuaas audit list --permission apps.instance. --project research -o json

    Parameters
    ----------
    actor
        List only requests of this account (id).
    permission
        List only requests whose permission key starts with this prefix.
    outcome
        List only allowed, or only denied requests.
    correlation
        List only rows with this correlation id.
    after
        List only rows after this sequence number.
    limit
        Maximum number of rows.
    """
    with session(common) as at:
        tenant_id = at.tenant_id(tenant)
        only = {"actor": actor, "permission": permission, "outcome": outcome, "correlation_id": correlation}
        only["project"] = at.project_id if common.project else None
        found = _newest(at.client, tenant_id, after, limit, only)
    if common.json:
        return show.as_json(found)
    if not found:
        print("No audit rows match.")
        return None
    rows = [
        (
            str(row.sequence),
            _when(row.at),
            row.outcome,
            row.permission,
            row.actor_id,
            row.resource_id or "-",
            row.reason,
        )
        for row in found
    ]
    return show.table(("ROW", "AT", "OUTCOME", "PERMISSION", "ACTOR", "TARGET", "REASON"), rows)


@app.command
def verify(*, tenant: Tenant = None, common: Looking = Looking()) -> int:
    """Check the audit trail for rows that were changed, removed or inserted afterwards. Exit code 9 if any are found.

    Example: gpuaas audit verify
    Example: gpuaas audit verify --tenant acme -o json
    """
    with session(common) as at:
        verdict = at.client.verify_audit(at.tenant_id(tenant))
    if common.json:
        show.as_json(verdict)
    elif verdict.ok:
        print(verdict.sentence)
    if verdict.broken:
        row = f" First break: row {verdict.broken.sequence}." if verdict.broken.sequence else ""
        failures.tell(f"{verdict.sentence}{row}", verdict.broken.way_out, code="audit_broken")
    return failures.OK if verdict.ok else failures.ENDED_BADLY


def _newest(client: Client, tenant_id: str, after: int, limit: int, only: dict[str, Any]) -> list[AuditView]:
    """Read pages backwards from the end of the audit trail. Returns the rows oldest first."""
    found: list[AuditView] = []
    before = 0
    while (wanted := min(PAGE, limit - len(found))) > 0:
        page = client.list_audit(tenant_id, before=before, limit=wanted, **only)
        fresh = [row for row in page.items if row.sequence > after]
        found += fresh
        if len(fresh) < wanted:
            break
        before = page.next_after
    return found[::-1]


def _when(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%d %b %H:%M:%S}"
