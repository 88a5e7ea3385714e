"""A controller in small, to be killed by test_slurm_state.py: two steps on a host that is a folder, with the real
runner, host.sh and journal. Arguments: the journal's place, the host's folder, the epoch of the claim."""

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpuaas_sdk.host_steps.host import Claim, Host, MachineLike
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Step, Task
from gpuaas_slurm.profile import PROFILE

OPERATION, ALLOCATION = "op_00000001", "alloc_00000001"
NAMES = ("files", "service")


class Folder(MachineLike):
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60) -> Any:  # noqa: ASYNC109
        text = argv[-1].replace("BASE=/var/lib/gpuaas-slurm", f"BASE={self.root}/lib")
        text = text.replace("RUN=/run/gpuaas-slurm", f"RUN={self.root}/run")
        done = await asyncio.to_thread(
            subprocess.run, [*argv[:-1], text], capture_output=True, text=True, timeout=timeout, check=False
        )
        return SimpleNamespace(exit=done.returncode, stdout=done.stdout, stderr=done.stderr)


async def run_with(journal: Journal, root: Path, epoch: int) -> None:
    host = Host(Folder(root), Claim("inst_00000001", OPERATION, epoch), ALLOCATION, "gpu1", "10.0.0.1", PROFILE)
    wanted = [
        Step(name, f"Making {name}", "software", f"test -e {root}/{name}", f"echo x >>{root}/{name}") for name in NAMES
    ]
    async with Reporter(_no_listener) as reporter:
        await Runner(journal, reporter).run([(Task(host, step),) for step in wanted])


async def _no_listener(*_: Any) -> None: ...


if __name__ == "__main__":
    where = sys.argv[1] if "://" in sys.argv[1] else Path(sys.argv[1])
    asyncio.run(run_with(Journal(where), Path(sys.argv[2]), int(sys.argv[3])))
