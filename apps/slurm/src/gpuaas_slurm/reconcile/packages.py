"""Installs missing packages on hosts, before anything else is checked there.

The package set is an artifact of the platform. The platform's agent downloads it to the host and checks its digest, so
the host needs no route to anything but the platform. Without a set the deploy fails and lists the missing packages.
"""

import asyncio
from collections.abc import Sequence

from gpuaas_sdk import Work
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Step, Task

from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.steps import packages


async def provide(
    work: Work, tools: Tools, hosts: dict[str, Host], facts: dict[str, HostFacts], runner: Runner
) -> bool:
    """Install missing packages. Returns True if packages were installed, so that the facts of the hosts must be read
    again; False if no package is missing or there is no package set."""
    lacking = [host for allocation_id, host in hosts.items() if facts[allocation_id].missing]
    if not lacking:
        return False
    found = await tools.package_set(work)
    if found is None:
        return False
    runner.reporter.say("preparing", 0, 1, "Bringing packages to the host" + ("s" if len(lacking) > 1 else ""))
    await _bring(work, tools, lacking, found.id, found.sha256)
    stage = tuple(Task(host, packages.install(found.sha256)) for host in lacking)
    await runner.run([stage])
    return True


async def newer(work: Work, tools: Tools, hosts: dict[str, Host], facts: dict[str, HostFacts]) -> dict[str, Step]:
    """Copy the package set to every host whose packages the platform installed. Returns the step that upgrades each of
    these hosts. Other hosts keep their packages; their owner upgrades them."""
    ours = [host for allocation_id, host in hosts.items() if facts[allocation_id].packaged]
    found = await tools.package_set(work) if ours else None
    if found is None:
        return {}
    await _bring(work, tools, ours, found.id, found.sha256)
    return {host.allocation_id: packages.renew(found.sha256) for host in ours}


async def _bring(work: Work, tools: Tools, lacking: Sequence[Host], artifact_id: str, sha256: str) -> None:
    path = packages.path_of(sha256)
    await asyncio.gather(*(tools.fetch(work, host.allocation_id, artifact_id, path) for host in lacking))
