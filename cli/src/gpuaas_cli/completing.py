"""Completion of the command line. The shell's completion script calls `gpuaas __complete WORDS…`.

Commands and options come from the commands themselves; names of instances, nodes and other resources come from the
platform, with one short request. On any error nothing is printed, because a message would disturb the typed line.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from cyclopts import App

    from .session import Session

PATIENCE_S = 5.0
SHELLS = {
    "bash": """\
_gpuaas() {
  local IFS=$'\\n'
  COMPREPLY=($(gpuaas __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _gpuaas gpuaas
""",
    "zsh": """\
#compdef gpuaas
_gpuaas() {
  local -a found
  found=("${(@f)$(gpuaas __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
if [[ ${funcstack[1]} == _gpuaas ]]; then _gpuaas; else compdef _gpuaas gpuaas; fi  # from a folder, or sourced
""",
    "fish": """\
complete -c gpuaas -f -a '(gpuaas __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
""",
}


def print_candidates(words: list[str]) -> None:
    with contextlib.suppress(Exception):
        print("\n".join(candidates(words or [""])))


def candidates(words: list[str]) -> list[str]:
    """Return the completions of the last word. The last word may be empty."""
    from .command_tree import build_app

    *before, begun = words
    app, rest = _command(build_app(), before)
    return sorted({one for one in _possible(app, rest, begun, before) if one.startswith(begun)})


def _command(app: App, words: list[str]) -> tuple[App, list[str]]:
    for number, word in enumerate(words):
        if word.startswith("-") or word not in app:
            return app, words[number:]
        app = app[word]
    return app, []


def _possible(app: App, rest: list[str], begun: str, before: list[str]) -> Iterable[str]:
    if app.default_command is None:
        return [name for name in app if not name.startswith("-")] if not rest else []
    arguments = list(app.assemble_argument_collection())
    options = {name: one for one in arguments if one.index is None for name in one.names if name.startswith("-")}
    last = options.get(rest[-1]) if rest else None
    if last is not None and last.hint is not bool:
        return get_args(last.hint) if _chosen_from(last.hint) else _names(last.field_info.name, before)
    if begun.startswith("-"):
        return [*options, "--help"]
    place = _position(rest, options)
    positional = [one for one in arguments if one.index is not None]
    wanted = positional[min(place, len(positional) - 1)].field_info.name if positional else ""
    return _names(wanted, before)


def _chosen_from(hint: Any) -> bool:
    return bool(get_args(hint)) and all(isinstance(one, str) for one in get_args(hint))


def _position(rest: list[str], options: dict[str, Any]) -> int:
    """Return how many of the words are positional arguments. Options and their values are not counted."""
    values = {n + 1 for n, word in enumerate(rest) if word in options and options[word].hint is not bool}
    return sum(1 for n, word in enumerate(rest) if not word.startswith("-") and n not in values)


def _instances(at: Session, _: list[str]) -> list[str]:
    return [one.name for one in at.client.list_instances(at.project_id).items]


def _members(at: Session, before: list[str]) -> list[str]:
    """Return the members of the instance that the typed words name; empty if they name no instance."""
    found = [one for one in at.client.list_instances(at.project_id).items if {one.name, one.id} & {*before}]
    members = at.client.list_members(at.project_id, found[-1].id).items if found else []
    return [f"{one.component_key}/{one.ordinal}" for one in members]


def _allocations(at: Session, _: list[str]) -> list[str]:
    return [one.name for one in at.client.list_allocations(at.project_id).items if one.state != "released"]


def _places(at: Session, before: list[str]) -> list[str]:
    """Return `component=allocation` for each component of the app that the typed words name, with each allocation."""
    entries = [entry for entry in at.client.get_catalog(at.project_id).items if entry.app.slug in before]
    components = [one["key"] for entry in entries for one in (entry.manifest or {}).get("components", [])]
    return [f"{component}={name}" for component in components for name in _allocations(at, before)]


def _projects(at: Session, _: list[str]) -> list[str]:
    return [one.slug for one in at.client.list_projects().items]


def _apps(at: Session, _: list[str]) -> list[str]:
    return [entry.app.slug for entry in at.client.get_catalog(at.project_id).items]


def _nodes(at: Session, _: list[str]) -> list[str]:
    return [one.name for one in at.client.list_nodes(at.tenant_id(None)).items if one.state != "retired"]


def _credentials(at: Session, _: list[str]) -> list[str]:
    return [one.name for one in at.client.list_credentials(at.project_id).items]


def _service_accounts(at: Session, _: list[str]) -> list[str]:
    return [one.name for one in at.client.list_service_accounts(at.project_id).items]


# By the parameter of the command; `name` means something else in each group, and nothing that exists where one is made.
ASKED: dict[str, Callable[[Session, list[str]], list[str]]] = {
    "instance": _instances,
    "operation": _instances,
    "what": _instances,
    "member": _members,
    "allocation": _allocations,
    "allocations": _allocations,
    "place": _places,
    "project": _projects,
    "app_slug": _apps,
    "node": _nodes,
    "allocation name": _allocations,
    "node name": _nodes,
    "credential name": _credentials,
    "service-account name": _service_accounts,
    "app name": _apps,
    "entitlement name": _apps,
}
MAKES = {"create", "enrol", "import"}


def _names(wanted: str, before: list[str]) -> Iterable[str]:
    if wanted == "name" and not MAKES & {*before[:2]}:
        wanted = f"{before[0]} name"
    if wanted == "context":
        from .config import Contexts

        return Contexts.saved().known
    if wanted not in ASKED:
        return []
    from .options import Common
    from .session import session

    project, api = _after(before, "--project", "-p"), _after(before, "--api")
    with session(Common(project=project, api=api, context=_after(before, "--context"))) as at, _briefly():
        return ASKED[wanted](at, before)


@contextlib.contextmanager
def _briefly() -> Iterator[None]:
    def too_long(*_: object) -> None:
        raise TimeoutError

    former = signal.signal(signal.SIGALRM, too_long)
    timer = signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, former)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def _after(words: list[str], *flags: str) -> str | None:
    return next((value for flag, value in itertools.pairwise(words) if flag in flags), None)
