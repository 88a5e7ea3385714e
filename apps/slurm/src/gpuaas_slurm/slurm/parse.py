"""Parses the output of Slurm's commands. Slurm 22.05 has no --json for scontrol and sacctmgr, so fixed formats are
used."""

import re
from dataclasses import dataclass

VERSION = re.compile(r"slurm(?:-wlm)?\s+(\d+\.\d+(?:\.\d+)?)")
STATES = {
    "idle": "idle",
    "mix": "busy",
    "alloc": "busy",
    "comp": "busy",
    "drain": "drained",
    "drng": "draining",
    "down": "down",
    "inval": "invalid",
    "maint": "reserved",
    "resv": "reserved",
}


def version(text: str) -> str | None:
    """Return the version number (`slurm-wlm 22.05.8` -> `22.05.8`), or None if the text has none."""
    found = VERSION.search(text)
    return found.group(1) if found else None


def node_state(text: str) -> str:
    """Map sinfo's `%t` (`idle`, `mix*`, …) to a value of members' runtime_state; anything else becomes `unknown`."""
    return STATES.get(text.strip().rstrip("*~#!%$@^+-"), "unknown")


def fields(text: str) -> dict[str, str]:
    """Parse scontrol lines of the form `A=1 B=two C(x)=3` into a dict (values without blanks)."""
    return dict(re.findall(r"(\S+?)=(\S*)", text))


@dataclass(frozen=True)
class Node:
    """A node as Slurm shows it."""

    name: str
    state: str  # in the words of members' runtime_state
    silent: bool  # it does not answer Slurm's pings
    version: str
    gpus: dict[str, int]  # by type
    by: str
    since: str
    reason: str


def read_node(line: str) -> Node | None:
    parts = line.split("|", 6)
    if len(parts) < 7 or not parts[0]:
        return None
    name, state, version, gres, by, since, reason = (part.strip() for part in parts)
    gpus = re.findall(r"\bgpu:(?:([a-z][a-z0-9_]*):)?(\d+)", gres)
    shown = "" if reason in ("", "none") else reason
    return Node(
        name=name,
        state=node_state(state),
        silent=state.endswith("*"),
        version=version,
        gpus={kind: int(many) for kind, many in gpus},
        by=by if shown else "",
        since=since if shown and since != "Unknown" else "",
        reason=shown,
    )
