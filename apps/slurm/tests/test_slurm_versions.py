"""Which version does what: the process says when an operation is not its own, and hosts are asked for what they run."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from gpuaas_sdk import Work
from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Claim, Host, MachineLike
from gpuaas_sdk.host_steps.step import Step
from gpuaas_slurm import __version__
from gpuaas_slurm.errors import NOTHING_CHANGED
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import make
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.reconcile import cluster, packages, versions
from gpuaas_slurm.reconcile.context import PackageSet, Tools
from gpuaas_slurm.steps import catalog

SHA = "a" * 64


def work(kind: str, *, to: str | None = None, instance: str = __version__) -> Work:
    operation = SimpleNamespace(kind=kind, to_version=to, id="op_00000001")
    return cast(Work, SimpleNamespace(operation=operation, instance=SimpleNamespace(version=instance)))


@pytest.mark.parametrize(
    ("kind", "to", "instance"),
    [("upgrade", "9.9.9", __version__), ("rollback", "0.0.1", __version__), ("deploy", None, "9.9.9"), ("deploy", None, "0.0.1")],
)  # fmt: skip
async def test_another_version_is_not_pretended(kind: str, to: str | None, instance: str) -> None:
    with pytest.raises(StepFailed) as failed:
        await versions.check(work(kind, to=to, instance=instance))
    assert failed.value.code == "controller_version"
    assert failed.value.code in NOTHING_CHANGED
    assert __version__ in failed.value.message
    assert str(to or instance) in failed.value.message


@pytest.mark.parametrize(
    ("kind", "to", "instance"),
    [("upgrade", __version__, "0.0.1"), ("rollback", __version__, "9.9.9"), ("deploy", None, __version__)]
    + [(kind, None, "0.2.0") for kind in ("decommission", "reconfigure", "add_member", "stop")],
)
async def test_what_is_ours_is_done(kind: str, to: str | None, instance: str) -> None:
    await versions.check(work(kind, to=to, instance=instance))


class Talking(MachineLike):
    def __init__(self, output: str) -> None:
        self.output = output

    async def run(self, argv: list[str], *, input: Any = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        return SimpleNamespace(exit=0, stdout=self.output, stderr="")


def host(name: str, output: str = "") -> Host:
    return Host(Talking(output), Claim("inst_00000001", "op_00000001", 1), f"alloc_{name}", name, "10.0.0.1", PROFILE)


async def test_each_host_says_what_its_programs_are() -> None:
    output = "@slurmctld slurm-wlm 22.05.8\n@slurmdbd \n@slurmd slurm-wlm 22.05.9\n@package slurmd|22.05.9-1\n"
    seen = (await versions.of({"alloc_1": host("gpu1", output)}))["alloc_1"]
    assert (seen.of_component("controller"), seen.of_component("worker")) == ("22.05.8", "22.05.9")
    assert seen.printed["package:slurmd"] == "22.05.9-1"
    assert seen.slurm("slurmdbd") is None


def facts(**more: Any) -> HostFacts:
    return HostFacts(hostname="gpu1", gpus=("/dev/nvidia0",), **more)


async def test_an_upgrade_renews_packages_only_where_they_came_with_us() -> None:
    brought: list[str] = []

    async def package_set(_: Work) -> PackageSet:
        return PackageSet("art_1", SHA)

    async def fetch(_: Work, allocation_id: str, artifact_id: str, path: str) -> None:
        brought.append(allocation_id)

    tools = cast(Tools, SimpleNamespace(package_set=package_set, fetch=fetch))
    hosts = {"alloc_gpu1": host("gpu1"), "alloc_gpu2": host("gpu2")}
    known = {"alloc_gpu1": facts(packaged=True), "alloc_gpu2": facts()}
    steps = await packages.newer(work("upgrade"), tools, hosts, known)
    assert (list(steps), brought) == (["alloc_gpu1"], ["alloc_gpu1"])
    none = {name: facts() for name in hosts}
    assert await packages.newer(work("upgrade"), tools, hosts, none) == {}


def test_an_upgrade_goes_from_the_database_outwards() -> None:
    members = [
        catalog.Member("mem_00000001", "controller"),
        catalog.Member("mem_00000002", "worker", allocation_id="alloc_00000002"),
    ]
    plan = make("inst_00000001", "example", {}, members, "prj_00000001", "team-a")
    hosts = {
        name: Host(Talking(""), Claim("inst_00000001", "op_00000001", 1), name, name, "10.0.0.1", PROFILE)
        for name in plan.allocations
    }
    newer = {name: Step("renew_packages", "Newer ones", "preparing", "true", "true") for name in hosts}
    stages = cluster._renewed(plan, hosts, {name: facts() for name in hosts}, newer)
    order = [(task.step.name, task.host.name) for stage in stages for task in stage]
    wanted = [
        ("dump", "alloc_00000001"), ("candidate", "alloc_00000001"), ("renew_packages", "alloc_00000001"),
        ("again_accounting", "alloc_00000001"), ("again_scheduler", "alloc_00000001"), ("renew_packages", "alloc_00000002"),
        ("again_worker", "alloc_00000002"), ("reread", "alloc_00000001"),
    ]  # fmt: skip
    assert [one for one in order if one in wanted] == wanted
