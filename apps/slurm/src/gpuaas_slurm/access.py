"""The access bundle: exact places and commands of a cluster, every one of them tried before it is shown."""

from dataclasses import dataclass
from typing import Any

from gpuaas_slurm import __version__
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.hosts import Answer
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.slurm import parse

PATHS = {
    "configuration": "/etc/slurm/slurm.conf",
    "gpus": "/etc/slurm/gres.conf",
    "accounting": "/etc/slurm/slurmdbd.conf",
    "logs": "/var/log/slurm",
    "state": "/var/lib/slurm",
    "notes_of_the_app": "/var/lib/gpuaas-slurm",
}


@dataclass(frozen=True)
class Proof:
    """What the proof steps left in the report on the host."""

    first_job_at_ms: int
    batch_job: str
    gpus: int
    gpu_seen: str
    versions: dict[str, str]
    commands: tuple[tuple[str, int], ...]
    nodes: dict[str, str]

    @property
    def slurm_version(self) -> str | None:
        return parse.version(self.versions.get("slurmctld", ""))

    def conditions(self, workers: int) -> list[dict[str, str]]:
        """The manifest's health questions, answered by what was just proven."""
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
        rows = [line.split("|") for line in answer.said.get("access", [])]
        gpus, _, seen = answer.one("gpu_job", "0|").partition("|")
        nodes = next((row[1] for row in rows if row[0] == "nodes"), "")
        return cls(
            first_job_at_ms=int(answer.one("first_job", "0|").partition("|")[0]),
            batch_job=answer.one("batch_job").partition("|")[0],
            gpus=int(gpus),
            gpu_seen=seen,
            versions={row[1]: row[2].strip() for row in rows if row[0] == "version"},
            commands=tuple((row[1], int(row[2])) for row in rows if row[0] == "command"),
            nodes={n: parse.node_state(t) for n, _, t in (w.partition("=") for w in nodes.split())},
        )


def bundle(plan: Plan, host: HostFacts, proof: Proof) -> dict[str, Any]:
    ask = f"-A {plan.account} -p {plan.partition}"
    gpu = [{"command": f"srun {ask} --gres=gpu:1 printenv CUDA_VISIBLE_DEVICES", "tried": "exit 0"}]
    return {
        "cluster": plan.cluster,
        "host": {"name": host.hostname, "node": plan.controller.host, "address": plan.controller.address},
        "user": plan.user,
        "account": plan.account,
        "partition": plan.partition,
        "gpus": {"count": proof.gpus, "type": plan.gpu_type if proof.gpus else None},
        "paths": PATHS,
        "ports": {"slurmctld": 6817, "slurmd": 6818, "slurmdbd": 6819},
        "commands": [
            {"command": f"srun {ask} hostname", "tried": "exit 0"},
            {"command": f"sbatch {ask} job.sh", "tried": f"job {proof.batch_job} completed"},
            *(gpu if proof.gpus else []),
            *({"command": command, "tried": f"exit {code}"} for command, code in proof.commands),
        ],
        "versions": {"app": __version__, **proof.versions},
        "nodes": [w.node for w in plan.workers],
    }
