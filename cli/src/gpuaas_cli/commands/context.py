"""Your platforms: `gpuaas context list`, `use`, `remove`."""

from __future__ import annotations

from dataclasses import replace

from cyclopts import App

from .. import show
from ..config import Contexts
from ..options import Common

app = App(name="context", help="The platforms you are signed in to, and which of them commands talk to.")


@app.command(name="list")
def list_contexts(*, common: Common = Common()) -> None:
    """The platforms you signed in to, each with its address; tokens are not shown.

    Example: gpuaas context list
    Example: gpuaas context list -o json
    """
    file = Contexts.saved()
    found = [_view(name, file) for name in sorted(file.known)]
    if common.json:
        return show.as_json(found)
    if not found:
        print("None yet. Sign in to one: gpuaas login --api https://… --email you@…")
        return None
    rows = [
        ("*" if one["current"] else "", one["name"], one["api"], one["email"] or "-", one["project"] or "-")
        for one in found
    ]
    return show.table(("", "NAME", "ADDRESS", "AS", "PROJECT"), [[str(cell) for cell in row] for row in rows])


def _view(name: str, file: Contexts) -> dict[str, str | bool]:
    one = file.known[name]
    said = {"name": name, "api": one.api, "email": one.email, "project": one.project}
    return {**said, "current": name == file.current, "signed_in": bool(one.token)}


@app.command
def use(name: str, /, *, common: Common = Common()) -> None:
    """Let commands talk to this platform from now on; with --project, work in that project there.

    Example: gpuaas context use night
    Example: gpuaas context use night --project research

    Parameters
    ----------
    name
        As `gpuaas context list` shows it.
    """
    file = Contexts.saved()
    chosen = file.named(name)
    if common.project:
        chosen = replace(chosen, project=common.project)
    file = replace(file.put(name, chosen), current=name)
    file.save()
    if common.json:
        return show.as_json(_view(name, file))
    print(f"Commands talk to {chosen.api} now" + (f", in the project {chosen.project}." if chosen.project else "."))
    return None


@app.command
def remove(name: str, /, *, common: Common = Common()) -> None:
    """Forget a platform and its token. The session there goes on; `gpuaas logout` ends it.

    Example: gpuaas context remove night

    Parameters
    ----------
    name
        As `gpuaas context list` shows it.
    """
    file = Contexts.saved()
    gone = _view(name, file) if file.named(name) else {}
    file.without(name).save()
    if common.json:
        return show.as_json(gone)
    left = "" if not gone["current"] else " None is current now: gpuaas context use NAME"
    print(f"{name} is forgotten here.{left}")
    return None
