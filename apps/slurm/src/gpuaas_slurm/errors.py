"""How an operation of this app can fail, as a table: code -> what the person can do, and whether trying again helps.

StepFailed is raised by the steps and turned into the SDK's Failed by the reconcilers. `message` is for the person,
`detail` for the engineer (it becomes adapter_detail).
"""

import re
from typing import Any

from gpuaas_sdk.host_steps.evidence import scrub

from gpuaas_slurm.hosts import Answer

KEYS = (
    "Restart the worker (`gpuaas member restart`), or the instance if it is the controller's host: it gets the key anew"
)
RETRY = "then run `gpuaas operation retry {operation}`; or decommission the instance."
RETRY_UPDATE = "then run `gpuaas operation retry {operation}`; or update the instance with the inputs it had."
WAYS_OUT: dict[str, tuple[str, bool]] = {
    "host_unreachable": ("Check that the host is on and its network works, " + RETRY, True),
    "host_identity_wrong": (
        "Do not go on before you know why the host shows another identity; enrol it anew if it was reinstalled, "
        + RETRY,
        False,
    ),
    "access_refused": (
        "Check that the host's clock is right (a certificate is good for minutes only), that its agent runs, and that"
        " it has applied the newest trust, " + RETRY,
        True,
    ),
    "package_missing": (
        "Install the named packages on the host, or give the platform a package set (`gpuaas-slurm packages build`), "
        + RETRY,
        True,
    ),
    "packages_not_delivered": (
        "See `gpuaas task list NODE`; check that the agent runs there and the artifact's source answers, " + RETRY,
        True,
    ),
    "disk_full": ("Free space on that file system, " + RETRY, True),
    "clock_wrong": ("Set the host's clock (for example with `timedatectl set-ntp true`), " + RETRY, True),
    "preflight_failed": ("Mend what the sentence names on the host, or choose another allocation, " + RETRY, True),
    "gpus_missing": ("Bring the GPU and its driver back, or remove the worker, " + RETRY, True),
    "port_in_use": ("Stop the program that holds the port, " + RETRY, True),
    "step_failed": ("Read the last lines of the service in the evidence, mend the host, " + RETRY, True),
    "keys_differ": (f"{KEYS}; {RETRY}", True),
    "accounting_not_ready": ("Read the last lines of slurmdbd and MariaDB in the evidence, " + RETRY, True),
    "job_proof_failed": ("Read what the job said in the evidence, mend the host, " + RETRY, True),
    "cluster_name_fixed": (
        "Update the instance with the name the cluster has. Decommission it and deploy anew to give it another.",
        False,
    ),
    "drained_by_somebody": ("Ask who drained the worker in Slurm to give it back, " + RETRY, True),
    "bootstrap_circuit_open": (
        "Read in the evidence what failed and mend it, then run `gpuaas operation retry {operation} --anyway`; or"
        " choose another allocation; or wait until `closes_at`.",
        True,
    ),
    "inputs_invalid": ("Update the instance with other inputs: `gpuaas instance update`; or decommission it.", False),
    "settings_refused": (
        "Update the instance with other values (`gpuaas instance update`); until then the former ones are in force.",
        False,
    ),
    "controller_version": (
        "Run that version of the controller for this project instead of this one, " + RETRY,
        True,
    ),
    "partition_in_use": ("Wait for these jobs, move or cancel them, " + RETRY_UPDATE, True),
    "workers_busy": ("Wait for these jobs, or drain the workers first (`gpuaas member drain`), " + RETRY_UPDATE, True),
    "state_unavailable": (
        "Bring the database or the disk back on which the controller keeps its journal (its runbook, section 5), "
        + RETRY,
        True,
    ),
    "teardown_incomplete": (
        "Read in the evidence which check failed, mend the host, then run `gpuaas operation retry {operation}`.",
        True,
    ),
}
UNREACHABLE_MEMBER = (
    "Bring the host back and run `gpuaas operation retry {operation}`. If it is a worker's and gone for good: `gpuaas"
    ' member {verb} … --host-is-gone --reason "…"` takes it out without it.'
)
UNREACHABLE_TEARDOWN = (
    "Bring the host back and run `gpuaas operation retry {operation}`. If it never comes back: `gpuaas operation"
    ' abandon {operation} --reason "…"`, which leaves an orphan record for every machine.'
)
# Found out before anything was changed: what ran still runs as it did.
NOTHING_CHANGED = frozenset(
    {
        "controller_version",
        "inputs_invalid",
        "cluster_name_fixed",
        "settings_refused",
        "partition_in_use",
        "workers_busy",
    }
)
NO_SPACE = re.compile(
    r"No space left on device|Errcode: 28|errno: 28|OS error 28|\bENOSPC\b|Disk full|enough free space"
)

# What systemd says around a service's own words: kept in the detail, but no answer to "why".
SYSTEMD = re.compile(r"^(Starting|Started|Stopping|Stopped) |\.service: |^(Result|ActiveState|SubState)=")


# What Slurm, munge and MariaDB say when they mean something simple. The first that is found counts: a wrong clock makes
# munge say more than a wrong key does.
MEANINGS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"(Rewound|Expired) credential|clock skew", re.IGNORECASE),
        "clock_wrong",
        "The clocks of {host} and of the controller's host are too far apart: munge refuses what one of them has signed"
        " on the other.",
    ),
    (
        re.compile(r"Invalid credential|Unauthorized credential|Protocol authentication error", re.IGNORECASE),
        "keys_differ",
        "{host} has another munge key than the rest of the cluster, so they refuse each other.",
    ),
    (
        re.compile(r"gres/gpu count (reported lower than configured|too low)|can't stat gres.conf file", re.IGNORECASE),
        "gpus_missing",
        "{host} has fewer GPUs than it had when it joined: a device file is gone.",
    ),
    (
        re.compile(r"Zero Bytes were transmitted", re.IGNORECASE),
        "keys_differ",
        "{host} and the controller's host refuse each other's messages: another munge key, or a clock that is far off.",
    ),
    (
        re.compile(r"mysql_real_connect failed|Can't connect to (local )?(MySQL )?server", re.IGNORECASE),
        "accounting_not_ready",
        "MariaDB on {host} does not answer, so slurmdbd cannot do its accounting.",
    ),
)


def recognised(text: str, host: str) -> tuple[str, str] | None:
    """Code and sentence, if the words are among those we know."""
    found = [(code, sentence.format(host=host)) for words, code, sentence in MEANINGS if words.search(text)]
    return found[0] if found else None


class StepFailed(Exception):
    def __init__(self, code: str, message: str, detail: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.detail = code, message, detail or {}

    def way_out(self, operation_id: str) -> str:
        return WAYS_OUT[self.code][0].format(operation=operation_id)

    @property
    def retryable(self) -> bool:
        return WAYS_OUT[self.code][1]


def explain(answer: Answer, *, host: str, step: str, title: str, code: str) -> StepFailed:
    """Why a step failed, from what its script said. A full disk hides behind many faces, so it is looked for first."""
    output = scrub(answer.text[-2000:])
    detail = {"step": step, "host": host, "exit": answer.exit, "output": output, **seen(answer)}
    if full := no_space(answer):
        return StepFailed(
            "disk_full", f"The file system {full} of {host} is full ({title[0].lower()}{title[1:]}).", detail
        )
    if said := answer.one("fail"):
        own_code, _, sentence = said.partition("|")
        return StepFailed(own_code if own_code in WAYS_OUT else code, sentence, detail)
    if known := recognised("\n".join([*detail["log"], output]), host):
        return StepFailed(*known, detail)
    words = [line for line in [*detail["log"], *output.splitlines()] if line.strip()] or ["nothing was said"]
    last = ([line for line in words if not SYSTEMD.search(line)] or words)[-1]
    return StepFailed(code, f"{title} on {host} did not work: {last.strip()[:300]}", detail)


def seen(answer: Answer) -> dict[str, Any]:
    """What host.sh `diagnose` found on the host."""
    units = (line.split("|") for line in answer.said.get("unit_state", []))
    return {
        "log": [scrub(line) for line in answer.said.get("log", [])[-20:]],
        "units": [dict(zip(("unit", "active", "sub", "result", "restarts"), one, strict=False)) for one in units],
        "host_journal": answer.said.get("act", [])[-8:],
    }


def no_space(answer: Answer) -> str | None:
    full = [line.split("|")[0] for line in answer.said.get("full", [])]
    if full:
        return full[0]
    everything = "\n".join([answer.text, *answer.said.get("log", [])])
    return "/" if NO_SPACE.search(everything) else None
