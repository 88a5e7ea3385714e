"""`gpuaas secret list|issue|delete`: secrets of an instance. Values can be set, never read."""

from __future__ import annotations

import sys
from typing import Annotated

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Changing, Destroying, Flag, Instance, Looking
from ..session import session

app = App(name="secret", help="Manage the secrets of an instance; only its controller can read them.")


@app.command(name="list")
def list_secrets(instance: Instance, /, *, common: Looking = Looking()) -> None:
    """List the names and versions of an instance's secrets.

    Example: gpuaas secret list train
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_secrets, at.project_id, at.instance(instance).id))
    if common.json:
        return show.as_json(found)
    if not found:
        print("No secrets.")
        return None
    rows = [(s.name, str(s.version), s.origin, show.ago(s.created_at)) for s in found]
    return show.table(("NAME", "VERSION", "ORIGIN", "ISSUED"), rows)


@app.command
def issue(
    instance: Instance,
    name: str,
    /,
    *,
    stdin: Annotated[bool, Flag] = False,
    length: int = 32,
    common: Changing = Changing(),
) -> None:
    """Create a secret of an instance, or its next version. The platform generates the value; --stdin reads it instead.

    Example: gpuaas secret issue train db_password
    Example: gpuaas secret issue train license --stdin < license.txt

    Parameters
    ----------
    name
        The secret's name: lowercase letters, digits and underscores.
    stdin
        Read the value from standard input instead of generating it.
    length
        Number of characters of a generated value.
    """
    value = sys.stdin.read().rstrip("\n") if stdin else None
    with session(common) as at:
        where = at.instance(instance).id
        made = at.client.issue_secret(at.project_id, where, name=name, value=value, length=length)
    if common.json:
        return show.as_json(made)
    print(f"{made.name} version {made.version} is {made.origin}; only the instance's controller can read it.")
    return None


@app.command
def delete(instance: Instance, name: str, /, *, common: Destroying = Destroying()) -> None:
    """Delete all versions of a secret.

    Example: gpuaas secret delete train db_password

    Parameters
    ----------
    name
        A name from `gpuaas secret list`.
    """
    with session(common) as at:
        gone = at.client.delete_secret(at.project_id, at.instance(instance).id, name=name)
    if common.json:
        return show.as_json(gone)
    print(f"Deleted {gone.name} with {gone.versions} version(s).")
    return None
