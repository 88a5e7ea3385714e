"""The platforms a person signed in to: `gpuaas context list`, `use`, `remove`."""

from __future__ import annotations

from dataclasses import replace

from cyclopts import App

from .. import show
from ..config import Contexts
from ..options import Common

app = App(name="context", help="List, choose and remove the platforms you signed in to.")


@app.command(name="list")
def list_contexts(*, common: Common = Common()) -> None:
    """List the platforms you signed in to, with their addresses. Tokens are not shown.

    Example: gpuaas context list
    Example: gpuaas context list -o json
    """
    file = Contexts.saved()
    found = [_view(name, file) for name in sorted(file.known)]
    if common.json:
        return show.as_json(found)
    if not found:
        print("No contexts yet. Sign in: gpuaas login --api https://… --email you@…")
        return None
    rows = [
        ("*" if one["current"] else "", one["name"], one["api"], one["email"] or "-", one["project"] or "-")
        for one in found
    ]
    return show.table(("", "NAME", "ADDRESS", "ACCOUNT", "PROJECT"), [[str(cell) for cell in row] for row in rows])


def _view(name: str, file: Contexts) -> dict[str, str | bool]:
    one = file.known[name]
    facts = {"name": name, "api": one.api, "email": one.email, "project": one.project}
    return {**facts, "current": name == file.current, "signed_in": bool(one.token)}


@app.command
def use(name: str, /, *, common: Common = Common()) -> None:
    """Make a platform the current platform; with --project, also set its default project.

    Example: gpuaas context use night
    Example: gpuaas context use night --project research

    Parameters
    ----------
    name
        A name from `gpuaas context list`.
    """
    file = Contexts.saved()
    chosen = file.named(name)
    if common.project:
        chosen = replace(chosen, project=common.project)
    file = replace(file.put(name, chosen), current=name)
    file.save()
    if common.json:
        return show.as_json(_view(name, file))
    print(f"The current platform is {chosen.api}" + (f", project {chosen.project}." if chosen.project else "."))
    return None


@app.command
def remove(name: str, /, *, common: Common = Common()) -> None:
    """Remove a platform and its token from this computer. The session stays valid; `gpuaas logout` ends the session.

    Example: gpuaas context remove night

    Parameters
    ----------
    name
        A name from `gpuaas context list`.
    """
    file = Contexts.saved()
    gone = _view(name, file) if file.named(name) else {}
    file.without(name).save()
    if common.json:
        return show.as_json(gone)
    left = "" if not gone["current"] else " No context is current: gpuaas context use NAME"
    print(f"{name} is removed from this computer.{left}")
    return None
