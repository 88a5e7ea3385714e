"""Versions of the programs on each host, and the check that this controller has the version that the operation
needs."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from gpuaas_sdk import Work
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Answer, Host

from gpuaas_slurm import __version__
from gpuaas_slurm.facts import STATES
from gpuaas_slurm.slurm import parse

PROGRAMS = {"controller": "slurmctld", "worker": "slurmd"}
RUNNING = """
for p in slurmctld slurmdbd slurmd; do ! active $p || say $p "$($p -V 2>/dev/null)"; done
"""
# Beside the programs that run, the packages they came in: a rebuilt package may print the same version.
ASK = f"""{RUNNING}
dpkg-query -W -f='@package ${{Package}}|${{Version}}\\n' slurmctld slurmdbd slurmd 2>/dev/null
"""


@dataclass(frozen=True)
class Versions:
    printed: dict[str, str]  # program -> its version line; package:NAME -> the package's version

    def slurm(self, program: str) -> str | None:
        return parse.version(self.printed.get(program, ""))

    def of_component(self, component: str) -> str | None:
        return self.slurm(PROGRAMS.get(component, "slurmctld"))


async def of(hosts: Mapping[str, Host]) -> dict[str, Versions]:
    words = f"{STATES}{ASK}exit 0\n"
    answers = await asyncio.gather(*(host.script(words, step="versions") for host in hosts.values()))
    return {allocation_id: read(answer) for allocation_id, answer in zip(hosts, answers, strict=True)}


def read(answer: Answer) -> Versions:
    return Versions(
        {program: answer.last(program) for program in ("slurmctld", "slurmdbd", "slurmd") if answer.last(program)}
        | {f"package:{line.partition('|')[0]}": line.partition("|")[2] for line in answer.lines.get("package", [])}
    )


def wanted(work: Work) -> str | None:
    """Return the app version that must run this operation; None if any version that supports the instance may run
    it."""
    operation = work.operation
    if operation.kind in ("upgrade", "rollback"):
        return operation.to_version
    return work.instance.version if operation.kind == "deploy" else None


async def check(work: Work) -> None:
    """Raise StepFailed if a deploy, upgrade or rollback needs another version of this controller."""
    version = wanted(work)
    if version not in (None, __version__):
        sentence = (
            f"The {work.operation.kind} needs version {version}, and this controller is gpuaas-slurm {__version__}."
        )
        raise StepFailed("controller_version", sentence, {"controller": __version__, "wanted": version})
