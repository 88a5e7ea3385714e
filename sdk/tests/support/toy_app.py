"""A toy app on the step engine: two steps on a host that is a folder. Run as a program, so that tests can kill it.

Arguments: journal file, host folder, epoch of the claim, and `deploy` or `decommission`.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from gpuaas_sdk.host_steps.errors import Failures
from gpuaas_sdk.host_steps.host import Claim, Host, ResultLike, take_charge
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.profile import HostProfile
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner
from gpuaas_sdk.host_steps.step import Stage, Step, Task
from gpuaas_sdk.machines.machine import Result

INSTANCE, OPERATION, ALLOCATION = "inst_00000001", "op_00000001", "alloc_00000001"
FAILURES = Failures(ways_out={"no_greeting": ("Write a greeting, then retry {operation}.", True)})


def profile(root: Path) -> HostProfile:
    return HostProfile("toy", "1.0", FAILURES, disks=("/",), base=f"{root}/lib", run=f"{root}/run")


class Folder:
    """A machine whose commands run in a local shell. After TOY_KILL_AFTER commands it kills this process."""

    commands = 0

    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60) -> ResultLike:  # noqa: ASYNC109
        data = input.encode() if isinstance(input, str) else input
        done = await asyncio.to_thread(subprocess.run, argv, input=data, capture_output=True, timeout=timeout)
        self.commands += 1
        if self.commands == int(os.environ.get("TOY_KILL_AFTER", "0")):
            os.kill(os.getpid(), signal.SIGKILL)
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def host(root: Path, epoch: int, operation: str = OPERATION) -> Host:
    root.mkdir(parents=True, exist_ok=True)
    return Host(Folder(), Claim(INSTANCE, operation, epoch), ALLOCATION, "local", "127.0.0.1", profile(root))


def steps(root: Path) -> list[Step]:
    """Each act appends, so that an act that ran twice shows."""
    greeting, mark = root / "greeting", root / "mark"
    return [
        Step(
            name="greet",
            title="Writing the greeting",
            phase="writing",
            probe=f"test -e {greeting}",
            act=f"cat >>{greeting}",
            data=b"hello\n",
            code="no_greeting",
            undo="remove",
        ),
        Step(
            name="mark",
            title="Marking the host",
            phase="marking",
            probe=f"test -e {mark}",
            act=f"test -s {greeting} || refuse no_greeting 'There is no greeting.'\necho x >>{mark}",
            undo="remove",
        ),
    ]


def removal(root: Path) -> Step:
    return Step(
        name="remove",
        title="Removing the toy",
        phase="removing",
        probe=f"! test -e {root}/greeting && ! test -e {root}/mark",
        act=f"rm -f {root}/greeting {root}/mark\nsay check 'files|yes|both files are deleted'",
    )


async def run(journal: Journal, root: Path, epoch: int, kind: str = "deploy") -> Runner:
    where = host(root, epoch)
    await take_charge({ALLOCATION: where})
    wanted = steps(root) if kind == "deploy" else [removal(root)]
    stages: list[Stage] = [(Task(where, step),) for step in wanted]

    async def send(*_: object) -> None: ...

    async with Reporter(send) as reporter:
        runner = Runner(journal, reporter, results={"remove": lambda answer: {"checks": answer.lines["check"]}})
        assert await runner.run(stages)
        await reporter.sent()
    return runner


if __name__ == "__main__":
    asyncio.run(run(Journal(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
