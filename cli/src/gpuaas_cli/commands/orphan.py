"""`gpuaas orphan list|resolve`: nodes that may not be clean after an operation ended without evidence."""

from __future__ import annotations

from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Flag, Looking
from ..session import session

app = App(name="orphan", help="List and resolve orphan records: nodes that may not be clean.")


@app.command(name="list")
def list_orphans(*, resolved: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """List the nodes that may still have files, services or processes of an instance.

    Example: gpuaas orphan list
    Example: gpuaas orphan list --resolved

    Parameters
    ----------
    resolved
        List resolved records instead.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_orphans, at.project_id, resolved=resolved or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No open orphan records.")
        return None
    rows = [(o.node_name, o.address, o.reason, show.ago(o.created_at), o.resolution or "-", o.id) for o in found]
    return show.table(("NODE", "ADDRESS", "REASON", "SINCE", "RESOLVED", "ID"), rows)


@app.command
def resolve(orphan: str, /, *, reason: str, common: Changing = Changing()) -> None:
    """Resolve an orphan record after you inspected the node and found it clean. The node can then be used again.

    Example: gpuaas orphan resolve orph_01hx… --reason "wiped it by hand"

    Parameters
    ----------
    orphan
        Id of the orphan record, see `gpuaas orphan list`.
    reason
        What you found and did; recorded in the audit trail.
    """
    with session(common) as at:
        found = at.client.resolve_orphan(at.project_id, orphan, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"{found.node_name} can be used again.")
    return None
