"""`gpuaas orphan list|resolve`: what was given up without evidence."""

from __future__ import annotations

from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Flag, Looking
from ..session import session

app = App(name="orphan", help="What was given up and may be left on machines.")


@app.command(name="list")
def list_orphans(*, resolved: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """Machines on which something may be left, and why.

    Example: gpuaas orphan list
    Example: gpuaas orphan list --resolved

    Parameters
    ----------
    resolved
        Those that somebody has looked at.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_orphans, at.project_id, resolved=resolved or None))
    if common.json:
        return show.as_json(found)
    if not found:
        print("Nothing was given up that nobody has looked at.")
        return None
    rows = [(o.node_name, o.address, o.reason, show.ago(o.created_at), o.resolution or "-", o.id) for o in found]
    return show.table(("NODE", "ADDRESS", "WHY", "SINCE", "RESOLVED", "ID"), rows)


@app.command
def resolve(orphan: str, /, *, reason: str, common: Changing = Changing()) -> None:
    """Say that somebody has looked at the machine; it can be used again then.

    Example: gpuaas orphan resolve orph_01hx… --reason "wiped it by hand"

    Parameters
    ----------
    orphan
        Its id, see `gpuaas orphan list`.
    reason
        What was found and done, for the record.
    """
    with session(common) as at:
        found = at.client.resolve_orphan(at.project_id, orphan, reason=reason)
    if common.json:
        return show.as_json(found)
    print(f"{found.node_name} can be used again.")
    return None
