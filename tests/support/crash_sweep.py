"""A Slurm controller that is killed (SIGKILL) at every point it reaches for the first time, and started again at once.

The controller is the real one. A parent that has everything imported forks a process per life; in it, the places where
the controller speaks to the platform or to a host are points with names. A file per point remembers where it died, so
one operation dies at each of its points once, and goes on. Started by test_sieve.py as a service of the stack.

`--how both`: at each API write once when the request is on its way and once when the answer is there, and after each
host command; after each act of one that has several, too: the host is then given only those before. Commands wait for each other and for what is being told to people, so that none is passed by while another
one kills. `--how kinds`: the same, but each kind of point once: a write of an operation whatever it is about, a step whatever
host it is done on.
`--how running`: in the middle of each host command, with everything side by side as it really is.
"""

import argparse
import asyncio
import ctypes
import os
import re
import signal
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import asyncssh  # noqa: F401  (before the fork)
from gpuaas_sdk import Calls
from gpuaas_sdk.client.models import ClaimView
from gpuaas_sdk.client.request import Request
from gpuaas_sdk.client.transport import Exchange
from gpuaas_sdk.client.transport_async import AsyncTransport
from gpuaas_sdk.host_steps import runner
from gpuaas_sdk.host_steps.host import Answer, Host
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.step import Task
from gpuaas_sdk.machines import machine  # noqa: F401  (before the fork)
from gpuaas_slurm import controller, logs

WRITES = re.compile(
    r"/operations/(?:(claim)|([^/]+)/(progress|complete|fail|return-claim|access-grants|tasks|integration))$"
)
ENDS = ("complete", "fail")  # of these only one side can be seen in an operation: it is over then
HEARD_TO_THE_END = ("add_member", "decommission")
MOST_ATTEMPTS = 4  # the platform gives up after eight claims without a step further
STILL_HERE = "The sieve goes on"


class Points:
    """The memory of all lives: a file per point."""

    def __init__(self, folder: Path, how: str) -> None:
        self.folder, self.how = folder, how
        self.kinds: dict[str, str] = {}
        self.count: Counter[str] = Counter()

    def reach(self, *words: str) -> None:
        if self.mark(*words):
            os.kill(os.getpid(), signal.SIGKILL)

    def reach_write(self, kind: str, write: str, *about: str, side: str) -> None:
        if self.how == "kinds":
            self.reach(kind, write, side)
        elif self.how == "both":
            self.reach(kind, write, *about, side)

    def command(self, kind: str, host: str, step: str, number: int) -> tuple[str, ...]:
        """The point after the so-many-th command of this step."""
        return (kind, step) if self.how == "kinds" else (kind, host, f"{step} {number}")

    def mark(self, *words: str) -> bool:
        """True for the first one who comes here."""
        try:
            (self.folder / _name(words)).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def acted(self, host: Host, step: str) -> None:
        with (self.folder.parent / "acts").open("a") as file:
            file.write(f"{step} on {host.name} in {self.kinds[host.claim.operation_id]}\n")

    def next(self, name: str) -> int:
        self.count[name] += 1
        return self.count[name]


def _name(words: Iterable[str]) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", ".".join(words).lower())


def at_each_write(points: Points) -> None:
    once, arguments = AsyncTransport._once, Exchange.arguments

    async def watched(self: AsyncTransport, exchange: Exchange[Any]) -> Any:
        answer = await once(self, exchange)
        if not (words := _write(points, exchange.request)):
            return answer
        if words == ("claim",):
            if answer is not None:
                points.kinds[answer.operation.id] = answer.operation.kind
                if answer.operation.attempts > MOST_ATTEMPTS:
                    await once(self, Exchange(_a_step_further(answer), self.auth, self.api))
                points.reach_write(answer.operation.kind, "claim", side="answered")
            return answer
        if words[1] not in ENDS or words[0] in HEARD_TO_THE_END:
            points.reach_write(*words, side="answered")
        return answer

    def traced(self: Exchange[Any], *given: Any) -> dict[str, Any]:
        async def trace(event: str, _: Any) -> None:
            if event == "http11.send_request_body.complete":
                _sent(points, self.request)

        return arguments(self, *given) | {"extensions": {"trace": trace}}

    AsyncTransport._once, Exchange.arguments = watched, traced  # pyright: ignore[reportAttributeAccessIssue]


def _write(points: Points, request: Request[Any]) -> tuple[str, ...]:
    found = WRITES.search(request.path) if request.method == "POST" else None
    if found is None:
        return ()
    if found[1]:
        return ("claim",)
    body = request.body or {}
    if body.get("message") == STILL_HERE:
        return ()
    about = body.get("message") or body.get("allocation_id") or body.get("kind") or ""
    return (points.kinds.get(found[2], "unknown"), found[3], about)


def _a_step_further(claim: ClaimView) -> Request[Any]:
    """More deaths than the platform would watch: it is told that there is progress, as there is."""
    said = {"phase": "checking", "step": 100 + claim.claim_epoch, "of": 100, "message": STILL_HERE}
    operation, instance = claim.operation, claim.instance
    return Calls.progress.request(instance.project_id, operation.id, claim_epoch=claim.claim_epoch, **said)


def _sent(points: Points, request: Request[Any]) -> None:
    words = _write(points, request)
    if not words:
        return
    if words == ("claim",):  # which operation it will be is not known yet: the one that died right after its claim
        for path in sorted(points.folder.glob("*.claim.answered")):
            points.reach_write(path.name.partition(".")[0], "claim", side="sent")
    elif words[1] not in ENDS or words[0] not in HEARD_TO_THE_END:
        points.reach_write(*words, side="sent")


def at_each_command(points: Points) -> None:
    script, enter = Host.script, Reporter.__aenter__
    one_at_a_time, reporters = asyncio.Lock(), list[Reporter]()

    async def entered(self: Reporter) -> Reporter:
        reporters.append(self)
        return await enter(self)

    async def watched(self: Host, body: str, **words: Any) -> Answer:
        if reporters:
            await reporters[-1]._queue.join()
        async with one_at_a_time:
            answer = await script(self, body, **words)
            acted = [name for name, part in answer.parts.items() if part.exit == 0 and "held" not in part.lines]
            for name in acted:
                points.acted(self, name)
            _reach_command(points, self, words | {"step": next(reversed(answer.parts), words.get("step", "look"))})
            return answer

    Host.script, Reporter.__aenter__ = watched, entered  # pyright: ignore[reportAttributeAccessIssue]
    command = runner.command

    async def cut_off(tasks: Sequence[Task], *, ask: bool) -> dict[str, Answer]:
        """Up to the first act after which no process has been killed yet."""
        ordered = sorted(tasks, key=lambda task: task.turn)
        new = [number for number, task in enumerate(ordered, 1) if not _known(points, task)]
        return await command(ordered[: new[0]] if new else ordered, ask=ask)

    runner.command = cut_off


def _known(points: Points, task: Task) -> bool:
    host = task.host
    kind = points.kinds[host.claim.operation_id]
    return (points.folder / _name(points.command(kind, host.name, task.step.name, 1))).exists()


def in_each_command(points: Points) -> None:
    script = Host.script

    async def watched(self: Host, body: str, **words: Any) -> Answer:
        running = asyncio.ensure_future(script(self, body, **words))
        await asyncio.wait({running}, timeout=0.02 + zlib.crc32(body.encode()) % 200 / 1000)
        _reach_command(points, self, words)
        return await running

    Host.script = watched  # pyright: ignore[reportAttributeAccessIssue]


def _reach_command(points: Points, host: Host, words: dict[str, Any]) -> None:
    kind = points.kinds[host.claim.operation_id]
    step = words.get("step", "look")
    points.reach(*points.command(kind, host.name, step, points.next(f"{kind}.{host.name}.{step}")))


HOW = {"kinds": at_each_command, "both": at_each_command, "running": in_each_command}


def live(options: argparse.Namespace) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    points = Points(options.points, options.how)
    at_each_write(points)
    HOW[options.how](points)
    logs.set_up()
    asyncio.run(controller.run([options.identity], str(options.state), options.holder))


def main() -> int:
    words = argparse.ArgumentParser()
    for name in ("points", "identity", "state"):
        words.add_argument(f"--{name}", type=Path, required=True)
    words.add_argument("--holder", required=True)
    words.add_argument("--how", choices=HOW, required=True)
    options = words.parse_args()
    while True:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            live(options)
            os._exit(0)
        signal.signal(signal.SIGTERM, lambda *_, child=child: os.kill(child, signal.SIGTERM))
        _, status = os.waitpid(child, 0)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
