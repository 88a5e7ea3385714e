"""Reading what Slurm's commands print (22.05: no --json for scontrol and sacctmgr, so fixed formats)."""

import re

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
    """`slurm-wlm 22.05.8` -> `22.05.8`."""
    found = VERSION.search(text)
    return found.group(1) if found else None


def node_state(text: str) -> str:
    """sinfo's `%t` (`idle`, `mix*`, …) in the words of members' runtime_state; anything else is unknown."""
    return STATES.get(text.strip().rstrip("*~#!%$@^+-"), "unknown")


def fields(text: str) -> dict[str, str]:
    """`A=1 B=two C(x)=3` lines of scontrol as a dict (values without blanks)."""
    return dict(re.findall(r"(\S+?)=(\S*)", text))
