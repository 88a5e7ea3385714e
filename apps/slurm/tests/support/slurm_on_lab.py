"""The reconcilers on a real lab host without a core: a small Work and a machine that enters the host by namespaces."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from gpuaas_lab.hosts import Lab
from gpuaas_sdk import Again, Done, Failed, Work
from gpuaas_sdk.client.errors import MachineUnreachable
from gpuaas_sdk.host_steps.host import MachineLike
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_slurm.reconcile.context import Tools
from gpuaas_slurm.reconcile.decommission import decommission
from gpuaas_slurm.reconcile.deploy import deploy

INSTANCE, ALLOCATION = "inst_01k9lab0000000000000000000", "alloc_01k9lab000000000000000000"
numbers = itertools.count(1)


class LabMachine(MachineLike):
    def __init__(self, lab: Lab, host: str) -> None:
        self.lab, self.host = lab, host

    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        data = input.encode() if isinstance(input, str) else input
        done = await asyncio.to_thread(self.lab.exec, self.host, argv, timeout, data)
        return SimpleNamespace(exit=done.exit, stdout=done.text, stderr=done.error_text)


class Bed:
    """One host, one instance, and the operations asked of it."""

    def __init__(self, lab: Lab, host: str, state: Path) -> None:
        self.lab, self.host, self.on = lab, host, True
        self.address = next(h.address for h in lab.status() if h.name == host)
        self.tools = Tools(
            Journal(state / "journal.db"), connect=self.connect, patience_s=0.5, package_set=self.package_set
        )
        self.output: list[str] = []

    async def package_set(self, work: Work) -> None:
        """This platform has none."""

    def sh(self, script: str, timeout: float = 180) -> str:
        done = self.lab.exec(self.host, ["bash", "-c", script], timeout)
        assert done.exit == 0, f"{script}: {done.text} {done.error_text}"
        return done.text.strip()

    def connect(self, work: Work, allocation_id: str) -> AbstractAsyncContextManager[MachineLike]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[MachineLike]:
            if not self.on:
                raise MachineUnreachable("gpu1 cannot be reached: no answer in time.")
            yield LabMachine(self.lab, self.host)

        return opened()

    async def deploy(self, **words: Any) -> Done | Again | Failed:
        return await deploy(self.work("deploy", **words), self.tools)

    async def decommission(self, **words: Any) -> Done | Again | Failed:
        return await decommission(self.work("decommission", **words), self.tools)

    def work(
        self, kind: str, *, operation: str | None = None, epoch: int = 1, inputs: dict[str, Any] | None = None
    ) -> Work:
        place = {
            "ordinal": 0,
            "allocation_id": ALLOCATION,
            "node_name": self.host,
            "address": self.address,
            "facts": {},
            "state": "pending",
        }
        members = [
            SimpleNamespace(id="mem_01k9lab0000000000000000001", component_key="controller", **place),
            SimpleNamespace(id="mem_01k9lab0000000000000000002", component_key="worker", **place),
        ]
        instance = SimpleNamespace(
            id=INSTANCE,
            name="lab-cluster",
            inputs=inputs or {},
            members=members,
            project_id="prj_01k9lab0000000000000000000",
        )
        named = operation or f"op_01k9lab{next(numbers):019d}"
        return cast(
            Work,
            SimpleNamespace(
                instance=instance,
                operation=SimpleNamespace(
                    id=named, kind=kind, correlation_id="cor-lab-0001", member_id=None, old_member_id=None, params={}
                ),
                claim_epoch=epoch,
                project_id=instance.project_id,
                stopping=False,
                cancel_requested=False,
                members=lambda key=None: [m for m in members if key in (None, m.component_key)],
                progress=self._progress,
                client=SimpleNamespace(get_project=self._project),
            ),
        )

    async def _progress(self, phase: str, step: int, of: int, message: str, **_: Any) -> None:
        self.output.append(f"{step}/{of} {message}")

    async def _project(self, _: str) -> Any:
        return SimpleNamespace(slug="team-a")
