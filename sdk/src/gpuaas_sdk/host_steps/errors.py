"""Errors of steps. `Failures` is an app's table of error codes: what a person can do, and whether a retry can help.

StepFailed is raised by steps and reconcilers; outcomes.py turns it into the SDK's Failed. `message` is for the person,
`detail` for the engineer (it becomes adapter_detail).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from ..client.errors import MachineUnreachable
from .evidence import scrub

if TYPE_CHECKING:
    from .host import Answer

RETRY = "then run `gpuaas operation retry {operation}`; or decommission the instance."
WAYS_OUT: dict[str, tuple[str, bool]] = {  # codes that the engine itself raises; apps add their own
    "host_unreachable": ("Check that the host is on and its network works, " + RETRY, True),
    "host_identity_wrong": (
        "Find out first why the host shows another identity. If it was reinstalled, enrol it again, " + RETRY,
        False,
    ),
    "access_refused": (
        "Check that the host's clock is right (a certificate is valid for minutes only), that its agent runs, and that"
        " it has applied the newest trust, " + RETRY,
        True,
    ),
    "disk_full": ("Free space on that file system, " + RETRY, True),
    "step_failed": ("Read the last lines of the service in the evidence, repair the host, " + RETRY, True),
    "inputs_invalid": ("Update the instance with other inputs: `gpuaas instance update`; or decommission it.", False),
    "bootstrap_circuit_open": (
        "Read the failure in the evidence and fix its cause, then run `gpuaas operation retry {operation} --anyway`; or"
        " choose another allocation; or wait until `closes_at`.",
        True,
    ),
    "state_unavailable": (
        "Restore the database or the disk on which the controller keeps its journal, " + RETRY,
        True,
    ),
    "teardown_incomplete": (
        "Read in the evidence which check failed, repair the host, then run `gpuaas operation retry {operation}`.",
        True,
    ),
}
NO_SPACE = re.compile(
    r"No space left on device|Errcode: 28|errno: 28|OS error 28|\bENOSPC\b|Disk full|enough free space"
)
# What systemd prints around the output of a service: kept in the detail, but it is not the cause.
SYSTEMD = re.compile(r"^(Starting|Started|Stopping|Stopped) |\.service: |^(Result|ActiveState|SubState)=")


class StepFailed(Exception):
    def __init__(self, code: str, message: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.detail: dict[str, object] = detail or {}


class StaleOnHost(Exception):
    """A newer claim controls this host: the caller must stop without changing or reporting anything."""


class Unreached(Exception):
    """The host of one allocation cannot be reached."""

    def __init__(self, allocation_id: str, cause: MachineUnreachable) -> None:
        super().__init__(str(cause))
        self.allocation_id = allocation_id


@dataclass(frozen=True)
class Meaning:
    """A known failure: a pattern that matches the output of a service, with the error code and the sentence for people.
    `{host}` in the sentence is replaced by the host's name."""

    pattern: re.Pattern[str]
    code: str
    sentence: str


@dataclass(frozen=True)
class Failures:
    ways_out: Mapping[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])
    by_kind: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])  # (code, operation kind)
    meanings: tuple[Meaning, ...] = ()  # the first that matches counts
    nothing_changed: frozenset[str] = frozenset()  # codes raised before anything was changed
    counted: frozenset[str] = frozenset({"step_failed"})  # codes that the circuit breaker counts
    input_errors: tuple[type[Exception], ...] = ()  # exceptions that mean "inputs_invalid"

    def knows(self, code: str) -> bool:
        return code in self.ways_out or code in WAYS_OUT

    def way_out(self, code: str, operation_id: str, kind: str = "") -> str:
        text = self.by_kind.get((code, kind)) or self._row(code)[0]
        if kind == "decommission":
            text = text.replace("; or decommission the instance", "")
        return text.format(operation=operation_id)

    def retryable(self, code: str) -> bool:
        return self._row(code)[1]

    def recognise(self, text: str, host: str) -> tuple[str, str] | None:
        """If the command output shows a known failure, return its error code and message; otherwise return None."""
        found = next((one for one in self.meanings if one.pattern.search(text)), None)
        return (found.code, found.sentence.format(host=host)) if found else None

    def explain(self, answer: Answer, *, host: str, step: str, title: str, code: str) -> StepFailed:
        """Return the StepFailed error for the output of a step's script. A full disk is checked first, because it
        causes many other errors."""
        output = scrub(answer.text[-2000:])
        found = diagnosis(answer)
        detail: dict[str, object] = {"step": step, "host": host, "exit": answer.exit, "output": output, **found}
        if full := no_space(answer):
            return StepFailed(
                "disk_full", f"The file system {full} of {host} is full ({title[0].lower()}{title[1:]}).", detail
            )
        if own := answer.last("fail"):
            own_code, _, sentence = own.partition("|")
            return StepFailed(own_code if self.knows(own_code) else code, sentence, detail)
        if known := self.recognise("\n".join([*found["log"], output]), host):
            return StepFailed(*known, detail)
        lines = [line for line in [*found["log"], *output.splitlines()] if line.strip()] or ["no output"]
        last = ([line for line in lines if not SYSTEMD.search(line)] or lines)[-1]
        return StepFailed(code, f"{title} on {host} failed: {last.strip()[:300]}", detail)

    def _row(self, code: str) -> tuple[str, bool]:
        return self.ways_out.get(code) or WAYS_OUT.get(code) or ("Repair the host, then retry.", True)


class Diagnosis(TypedDict):
    log: list[str]
    units: list[dict[str, str]]
    host_journal: list[str]


def diagnosis(answer: Answer) -> Diagnosis:
    """Return what the function `diagnose` of host.sh found: log lines, states of services, and the host's own
    journal."""
    units = (line.split("|") for line in answer.lines.get("unit_state", []))
    return {
        "log": [scrub(line) for line in answer.lines.get("log", [])[-20:]],
        "units": [dict(zip(("unit", "active", "sub", "result", "restarts"), one, strict=False)) for one in units],
        "host_journal": answer.lines.get("act", [])[-8:],
    }


def no_space(answer: Answer) -> str | None:
    """Return the path of the full file system if a full disk made the command fail, otherwise None."""
    full = [line.split("|")[0] for line in answer.lines.get("full", [])]
    if full:
        return full[0]
    everything = "\n".join([answer.text, *answer.lines.get("log", [])])
    return "/" if NO_SPACE.search(everything) else None
