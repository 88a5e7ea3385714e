"""One host as the steps see it: a machine of the SDK, fenced by the claim, spoken to in shell scripts.

`host.sh` is put before every script: it refuses (exit 75) a claim that is not the newest this host has seen, writes
the host's own journal, and holds the gates that wait on the host instead of over the network.
"""

import re
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any, Protocol

import structlog

from gpuaas_slurm import validate

log = structlog.get_logger()
STALE_EXIT, LOCKED_EXIT = 75, 74
PART = re.compile(r"^@step ([a-z0-9_]+)\|(\d+)\|(\d+)$", re.MULTILINE)  # run_acts of host.sh says it


class ResultLike(Protocol):
    @property
    def exit(self) -> Any: ...
    @property
    def stdout(self) -> Any: ...
    @property
    def stderr(self) -> Any: ...


class MachineLike(Protocol):
    """What the steps need of gpuaas_sdk.machines.machine.Machine; the lab tests bring a smaller one."""

    async def run(  # the names are the SDK's
        self,
        argv: list[str],
        *,
        input: bytes | str | None = None,
        timeout: float = 60,  # noqa: ASYNC109
    ) -> ResultLike: ...


class StaleOnHost(Exception):
    """A newer claim is in charge of this host: stop, change nothing, report nothing."""


@dataclass(frozen=True)
class Claim:
    """Who acts: the operation and the epoch of its claim; on one member, or (no member) on the whole instance."""

    instance_id: str
    operation_id: str
    epoch: int
    member_id: str = ""


@dataclass(frozen=True)
class Answer:
    """What a script said: marked lines (`@key value`) apart from plain output. Of several acts each has its part."""

    exit: int
    said: dict[str, list[str]]
    text: str
    parts: "dict[str, Answer]" = field(default_factory=dict)  # by step; what was not begun is not there
    ms: int | None = None  # that a part took on the host

    def one(self, key: str, default: str = "") -> str:
        return self.said.get(key, [default])[-1]


@dataclass(frozen=True)
class Host:
    machine: MachineLike
    claim: Claim
    allocation_id: str
    name: str
    address: str

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
        """`also`: the other steps of the same command, for those who read the log."""
        text = preamble(self.claim, step=step, unit=unit, within=within) + body
        started = time.monotonic()
        result = await self.machine.run(["bash", "-c", text], input=data, timeout=within + 90)
        answer = parse(int(result.exit or 0), _text(result.stdout), _text(result.stderr))
        self._note("+".join([step, *also]), answer.exit, time.monotonic() - started, _text(result.stderr))
        if answer.exit == STALE_EXIT:
            raise StaleOnHost(f"{self.name}: a newer claim is in charge ({answer.one('stale')})")
        return answer

    def _note(self, step: str, code: int, seconds: float, stderr: str) -> None:
        """The command in short, for the log and for triage: never its text, its input or its output."""
        last = next((line.strip()[:300] for line in reversed(stderr.splitlines()) if line.strip()), "")
        row = {"kind": "command", "step": step, "host": self.name, "exit": code, "ms": round(seconds * 1000)}
        (log.info if code == 0 else log.warning)("host command", **row, stderr=last)


def preamble(claim: Claim, *, step: str, unit: str, within: float) -> str:
    values = {
        "INSTANCE": validate.word("id", claim.instance_id),
        "SCOPE": validate.word("id", claim.member_id) if claim.member_id else "",
        "OPERATION": validate.word("id", claim.operation_id),
        "EPOCH": str(validate.whole("epoch", claim.epoch, 0, 2**53)),
        "STEP": validate.word("step", step),
        "UNIT": validate.word("unit", unit) if unit else "",
        "WITHIN": str(max(1, round(within))),
    }
    return "".join(f"{k}={shlex.quote(v)}\n" for k, v in values.items()) + library()


@cache
def library() -> str:
    return resources.files("gpuaas_slurm").joinpath("host.sh").read_text()


def parse(code: int, stdout: str, stderr: str = "") -> Answer:
    said: dict[str, list[str]] = {}
    plain: list[str] = []
    before, *parts = PART.split(stdout)
    for line in before.splitlines():
        key, _, value = line.partition(" ")
        if line.startswith("@") and len(key) > 1:
            said.setdefault(key[1:], []).append(value)
        else:
            plain.append(line)
    text = "\n".join([*plain, *stderr.splitlines()]).strip()
    return Answer(code, said, text, dict(_part(*parts[n : n + 4]) for n in range(0, len(parts), 4)))


def _part(step: str, code: str, ms: str, stdout: str) -> tuple[str, Answer]:
    return step, replace(parse(int(code), stdout), ms=int(ms))


def _text(value: bytes | str | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""
