"""A host as the steps use it: runs shell scripts over the SDK's Machine, fenced by the claim.

`host.sh` precedes every script: it rejects (exit 75) a claim older than the newest one on this host, writes the host's
own journal, and waits on the host instead of over the network.
"""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Protocol, TypeVar, overload

import structlog

from . import validate
from .errors import StaleOnHost, StepFailed, no_space
from .profile import HostProfile

log = structlog.get_logger()
STALE_EXIT, LOCKED_EXIT = 75, 74
A = TypeVar("A")
B = TypeVar("B")
# The fence comes first and then waits until no act is running any more, so that what is read afterwards stays true.
TAKE_CHARGE = """
fence || { df -kP /var/lib /run | awk 'NR>1 && $4<1024 {print "@full " $6 "|" $4}'; exit 1; }
alone
"""
PART = re.compile(r"^@step ([a-z0-9_]+)\|(\d+)\|(\d+)$", re.MULTILINE)  # printed by run_acts of host.sh


class ResultLike(Protocol):
    @property
    def exit(self) -> int | None: ...
    @property
    def stdout(self) -> bytes | str | None: ...
    @property
    def stderr(self) -> bytes | str | None: ...


class MachineLike(Protocol):
    """The part of gpuaas_sdk.Machine that the steps use; tests provide a smaller implementation."""

    async def run(  # the names are the SDK's
        self,
        argv: list[str],
        *,
        input: bytes | str | None = None,
        timeout: float = 60,  # noqa: ASYNC109
    ) -> ResultLike: ...


@dataclass(frozen=True)
class Claim:
    """The operation and the epoch of its claim, for one member or (without a member) for the whole instance."""

    instance_id: str
    operation_id: str
    epoch: int
    member_id: str = ""


@dataclass(frozen=True)
class Answer:
    """The output of a script: lines of the form `@key value` by key, separate from plain output. A script with several
    acts has one part per act."""

    exit: int
    lines: dict[str, list[str]]
    text: str
    parts: dict[str, Answer] = field(default_factory=dict[str, "Answer"])  # by step, of the steps that were begun
    ms: int | None = None  # how long a part took on the host

    def last(self, key: str, default: str = "") -> str:
        return self.lines.get(key, [default])[-1]


@dataclass(frozen=True)
class Host:
    machine: MachineLike
    claim: Claim
    allocation_id: str
    name: str
    address: str
    profile: HostProfile

    async def script(
        self,
        body: str,
        *,
        step: str = "look",
        unit: str = "",
        within: float = 10,
        data: bytes | None = None,
        also: Sequence[str] = (),
    ) -> Answer:
        """Run a shell script on the host, preceded by host.sh, and return its output. `also` names the other steps of
        the same command, for the log. Raises StaleOnHost if a newer claim controls the host."""
        text = preamble(self.profile, self.claim, step=step, unit=unit, within=within) + body
        started = time.monotonic()
        result = await self.machine.run(["bash", "-c", text], input=data, timeout=within + 90)
        answer = parse(int(result.exit or 0), _text(result.stdout), _text(result.stderr))
        self._note("+".join([step, *also]), answer.exit, time.monotonic() - started, _text(result.stderr))
        if answer.exit == STALE_EXIT:
            raise StaleOnHost(f"{self.name}: a newer claim controls it ({answer.last('stale')})")
        return answer

    def _note(self, step: str, code: int, seconds: float, stderr: str) -> None:
        """Log one line per command, also for triage, with the last line of stderr. The command's text, input and stdout
        are never logged."""
        last = next((line.strip()[:300] for line in reversed(stderr.splitlines()) if line.strip()), "")
        row = {"kind": "command", "step": step, "host": self.name, "exit": code, "ms": round(seconds * 1000)}
        (log.info if code == 0 else log.warning)("host command", **row, stderr=last)


def preamble(profile: HostProfile, claim: Claim, *, step: str, unit: str, within: float) -> str:
    """Return the variables for host.sh, followed by host.sh itself."""
    app = validate.word("app", profile.app)
    values = {
        "BASE": f"{validate.word('path', profile.base)}/{app}",
        "RUN": f"{validate.word('path', profile.run)}/{app}",
        "APP_DISKS": " ".join(validate.word("path", path) for path in profile.disks),
        "INSTANCE": validate.word("id", claim.instance_id),
        "SCOPE": validate.word("id", claim.member_id) if claim.member_id else "",
        "OPERATION": validate.word("id", claim.operation_id),
        "EPOCH": str(validate.whole("epoch", claim.epoch, 0, 2**53)),
        "STEP": validate.word("step", step),
        "UNIT": validate.word("unit", unit) if unit else "",
        "WITHIN": str(max(1, round(within))),
    }
    units = " ".join(validate.word("unit", one) for one in profile.units)
    logs = " ".join(f"[{validate.word('unit', u)}]={shlex.quote(path)}" for u, path in profile.unit_logs.items())
    arrays = f"APP_UNITS=({units})\ndeclare -A APP_LOGS=({logs})\n"
    return "".join(f"{k}={shlex.quote(v)}\n" for k, v in values.items()) + arrays + library()


@cache
def library() -> str:
    return resources.files("gpuaas_sdk.host_steps").joinpath("host.sh").read_text()


def parse(code: int, stdout: str, stderr: str = "") -> Answer:
    marked: dict[str, list[str]] = {}
    plain: list[str] = []
    before, *parts = PART.split(stdout)
    for line in before.splitlines():
        key, _, value = line.partition(" ")
        if line.startswith("@") and len(key) > 1:
            marked.setdefault(key[1:], []).append(value)
        else:
            plain.append(line)
    text = "\n".join([*plain, *stderr.splitlines()]).strip()
    return Answer(code, marked, text, dict(_part(*parts[n : n + 4]) for n in range(0, len(parts), 4)))


def _part(step: str, code: str, ms: str, stdout: str) -> tuple[str, Answer]:
    return step, replace(parse(int(code), stdout), ms=int(ms))


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def unit_states(units: Sequence[str]) -> str:
    """Return shell text that reads the state of all services in one call, so that no probe has to start systemctl."""
    if not units:
        return ""
    return f"""
declare -A state_of
mapfile -t states < <(systemctl is-active {" ".join(f"{u}.service" for u in units)} 2>/dev/null)
for u in {" ".join(units)}; do state_of[$u]=${{states[0]-}} states=("${{states[@]:1}}"); done
active() {{ [ "${{state_of[$1]}}" = active ]; }}
"""


async def take_charge(hosts: Mapping[str, Host]) -> None:
    """Fence every host with this claim. When the call returns, no act of an earlier claim runs there."""
    answers = await together(*(host.script(TAKE_CHARGE, within=60) for host in hosts.values()))
    for host, answer in zip(hosts.values(), answers, strict=True):
        if answer.exit != 0:
            raise unreadable(host, answer)


def unreadable(host: Host, answer: Answer) -> StepFailed:
    """Return the error for a failed command that only reads the state of the host."""
    if full := no_space(answer):
        return StepFailed("disk_full", f"The file system {full} of {host.name} is full.", {"host": host.name})
    why = "another command holds its lock" if answer.exit == LOCKED_EXIT else answer.text[-300:]
    return StepFailed("step_failed", f"Cannot read the state of {host.name}: {why}", {"host": host.name})


@overload
async def together(first: Awaitable[A], second: Awaitable[B], /) -> tuple[A, B]: ...
@overload
async def together(*jobs: Awaitable[A]) -> Sequence[A]: ...
async def together(*jobs: Awaitable[object]) -> Sequence[object]:
    """Wait until all awaitables have ended, and return their results. The first exception is raised only then, so that
    no command is abandoned."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return tuple(results)
