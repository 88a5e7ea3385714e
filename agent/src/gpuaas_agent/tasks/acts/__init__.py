"""The table of task kinds, one module each. A kind that is not in this table is never run, whatever its signature."""

from collections.abc import Callable
from typing import Any

from gpuaas_agent.tasks.acts import collect_evidence, fetch_artifact, run_unit, upgrade_agent, wipe, write_file
from gpuaas_agent.tasks.document import KINDS
from gpuaas_agent.tasks.work import Work

Act = Callable[[Work], dict[str, Any]]
ACTS: dict[str, Act] = {
    "write_file": write_file.act,
    "fetch_artifact": fetch_artifact.act,
    "run_unit": run_unit.act,
    "collect_evidence": collect_evidence.act,
    "wipe": wipe.act,
    "upgrade_agent": upgrade_agent.act,
}
assert ACTS.keys() == KINDS.keys(), "kinds.json and the acts of this agent are not of the same release"
