"""The access bundle: addresses and commands of a cluster. Each command was run before it is shown.

A deploy builds it from what was proven (`bundle`). Each observation updates it (`refreshed`): it counts workers that
joined later, adds headers for new partitions and GPU types, and marks as stale what cannot be checked now.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuaas_sdk.host_steps.host import Answer

from gpuaas_slurm import __version__, validate
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.health import Worker
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.probes import HeadSeen
from gpuaas_slurm.slurm import parse
from gpuaas_slurm.slurm.hints import HEALTH
from gpuaas_slurm.steps.proof import header, try_header

PATHS = {
    "configuration": "/etc/slurm/slurm.conf",
    "gpus": "/etc/slurm/gres.conf",
    "accounting": "/etc/slurm/slurmdbd.conf",
    "logs": "/var/log/slurm",
    "state": "/var/lib/slurm",
    "notes_of_the_app": "/var/lib/gpuaas-slurm",
}
NEEDS_SCHEDULER = ["commands", "health", "sbatch_headers", "nodes", "gpus"]
Key = tuple[str, str | None]  # partition, GPU type


@dataclass(frozen=True)
class Proof:
    """The results of the proof steps, as written to the report on the host."""

    first_job_at_ms: int
    batch_job: str
    gpus: int
    gpu_seen: str
    versions: dict[str, str]
    commands: tuple[tuple[str, int], ...]
    headers: tuple[Key, ...]
    nodes: dict[str, str]

    @property
    def slurm_version(self) -> str | None:
        return parse.version(self.versions.get("slurmctld", ""))

    def conditions(self, workers: int) -> list[dict[str, str]]:
        """Return the health conditions that the manifest declares, according to what the deploy has just proven."""
        ready = sum(state in ("idle", "busy") for state in self.nodes.values())
        gpu = f", and one saw GPU {self.gpu_seen}" if self.gpus else ""
        rows = [
            ("accounting", bool(self.batch_job), f"Batch job {self.batch_job} is in the accounting records."),
            ("scheduler", self.first_job_at_ms > 0, "The scheduler answers."),
            ("worker", ready >= workers, f"{ready} of {workers} workers are ready."),
            ("jobs", self.first_job_at_ms > 0, f"Jobs of an ordinary user ran{gpu}."),
        ]
        return [
            {
                "type": kind,
                "status": str(ok),
                "reason": "proven" if ok else "not_proven",
                "message": text,
            }
            for kind, ok, text in rows
        ]

    @classmethod
    def read(cls, answer: Answer) -> "Proof":
        rows = [line.split("|") for line in answer.lines.get("access", [])]
        gpus, _, seen = answer.last("gpu_job", "0|").partition("|")
        nodes = next((row[1] for row in rows if row[0] == "nodes"), "")
        return cls(
            first_job_at_ms=int(answer.last("first_job", "0|").partition("|")[0]),
            batch_job=answer.last("batch_job").partition("|")[0],
            gpus=int(gpus),
            gpu_seen=seen,
            versions={row[1]: row[2].strip() for row in rows if row[0] == "version"},
            commands=tuple((row[1], int(row[2])) for row in rows if row[0] == "command"),
            headers=tuple((row[1], row[2] or None) for row in rows if row[0] == "header" and row[3] == "0"),
            nodes={n: parse.node_state(t) for n, _, t in (w.partition("=") for w in nodes.split())},
        )


def bundle(plan: Plan, facts: Mapping[str, HostFacts], proof: Proof) -> dict[str, Any]:
    host = facts[plan.controller.allocation_id]
    ask = f"-A {plan.account} -p {plan.partition}"
    gpu = [{"command": f"srun {ask} --gres=gpu:1 printenv CUDA_VISIBLE_DEVICES", "tried": "exit 0"}]
    tried = [{"command": command, "tried": f"exit {code}"} for command, code in proof.commands]
    return {
        "cluster": plan.cluster,
        "host": {"name": host.hostname, "node": plan.controller.host, "address": plan.controller.address},
        "user": plan.user,
        "account": plan.account,
        "partition": plan.partition,
        "workers": len(plan.workers),
        "gpus": {"count": proof.gpus, "types": plan.gpus_by_type({a: one.gpus for a, one in facts.items()})},
        "paths": PATHS,
        "ports": {"slurmctld": 6817, "slurmd": 6818, "slurmdbd": 6819},
        "commands": [
            {"command": f"srun {ask} hostname", "tried": "exit 0"},
            {"command": f"sbatch {ask} job.sh", "tried": f"job {proof.batch_job} completed"},
            *(gpu if proof.gpus else []),
            *(one for one in tried if one["command"] not in HEALTH),
        ],
        "health": [one for one in tried if one["command"] in HEALTH],
        "sbatch_headers": [shown_header(plan, key) for key in proof.headers],
        "versions": {"app": __version__, **proof.versions},
        "nodes": [w.node for w in plan.workers],
    }


def shown_header(plan: Plan, key: Key) -> dict[str, Any]:
    return {"partition": key[0], "gpu": key[1], "header": header(plan, *key), "tried": "sbatch --test-only: exit 0"}


def headers_wanted(head: HeadSeen) -> list[Key]:
    """Return the job headers that the access bundle should show: one per partition, and one per partition and GPU type.
    Names that fail validation are skipped."""
    types = sorted({kind for node in head.nodes.values() for kind in node.gpus if kind})
    names = [name for name in sorted(head.partitions) if _usable("partition", name)]
    return [(name, gpu) for name in names for gpu in (None, *(one for one in types if _usable("gpu_type", one)))]


def _usable(what: str, value: str) -> bool:
    try:
        return bool(validate.word(what, value))
    except validate.BadWord:
        return False


def try_headers(plan: Plan, keys: Iterable[Key]) -> str:
    """Return a script that tests, as the cluster's user, whether Slurm would accept a job with each header. No job
    starts."""
    return "\n".join([*(try_header(plan, *key) for key in keys), "exit 0\n"])


def read_tried(answer: Answer) -> dict[Key, bool]:
    rows = [line.split("|") for line in answer.lines.get("header", [])]
    return {(row[0], row[1] or None): row[2] == "0" for row in rows if len(row) == 3}


def refreshed(
    before: Mapping[str, Any],
    plan: Plan,
    head: HeadSeen,
    workers: Iterable[Worker],
    wanted: Iterable[Key],
    tried: Mapping[Key, bool],
    *,
    app_version: str,
) -> dict[str, Any]:
    """Return the access bundle updated with what was observed. It equals the old bundle if nothing has changed, and is
    marked as stale if the scheduler does not answer."""
    now = {name: value for name, value in before.items() if name != "stale"}
    if not head.answers:
        return now | {"stale": NEEDS_SCHEDULER}
    there = [one for one in workers if one.node is not None]
    gpus: Counter[str] = sum((Counter(one.node.gpus) for one in there if one.node), Counter())
    shown = {(one["partition"], one["gpu"]): one for one in before.get("sbatch_headers", [])}
    kept = [shown.get(key) or shown_header(plan, key) for key in wanted if key in shown or tried.get(key)]
    members = {plan.controller.host: head.version} if head.version else {}
    members |= {one.slot.host: one.node.version for one in there if one.node and one.node.version}
    versions = {name: value for name, value in now.get("versions", {}).items() if name not in ("app", "members")}
    return now | {
        "workers": len(there),
        "nodes": [one.slot.node for one in there],
        "gpus": {"count": gpus.total(), "types": dict(sorted(gpus.items()))},
        "sbatch_headers": kept,
        "versions": {"app": app_version, **versions, "members": members},
    }
