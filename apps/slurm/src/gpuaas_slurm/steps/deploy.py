"""The order of the deploy steps. Steps of one stage do not depend on each other and run concurrently.

The order database, accounting, accounts, scheduler avoids InvalidAccount errors: the accounts exist when slurmctld
starts and reads them. The worker starts only when port 6817 is open.
"""

import asyncio
import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuaas_sdk.host_steps.errors import StepFailed
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Stage, Step, Task, in_one_go

from gpuaas_slurm.facts import UNITS, HostFacts, common_uid
from gpuaas_slurm.plan import UNIX_USER, Plan, WorkerSlot
from gpuaas_slurm.render.files import SHARED, SLURM_CONF, cluster_files
from gpuaas_slurm.steps import candidate, daemons, prepare, proof

KEY = "/etc/munge/munge.key"
HEAD_UNITS = tuple(unit for unit in UNITS if unit != "slurmd")


def stages(plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts]) -> list[Stage]:
    gpus = plan.gpus_by_type({a: one.gpus for a, one in facts.items()})
    return [*without_proofs(plan, hosts, facts), *_proofs(plan, hosts[plan.controller.allocation_id], gpus)]


def without_proofs(
    plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts], *, running: bool = False
) -> list[Stage]:
    """Return the deploy stages without proof jobs, for a cluster with users: proof jobs would wait behind the users'
    jobs."""
    head, uid = hosts[plan.controller.allocation_id], common_uid(facts.values())
    key = facts[plan.controller.allocation_id].key
    apart, share = [hosts[a] for a in plan.allocations if hosts[a] is not head], KeyOf(head)
    rejoining = candidate.must_rejoin(plan, facts) if running else ()
    first = tuple(Task(hosts[a], prepare.preflight()) for a in plan.allocations)
    *weighed, files = files_only(plan, hosts, facts, running=running)
    then = tuple(task for a in plan.allocations for task in prepared(plan, hosts[a], uid))
    up = [daemons.accounting(), daemons.accounts(plan), daemons.scheduler(plan, fresh=not running)]
    control: list[Stage] = [(Task(head, step),) for step in up]
    keyed = tuple(Task(host, daemons.join_key(share, key)) for host in apart)
    work = tuple(_worker(plan, hosts[w.allocation_id], w, rejoining=w in rejoining) for w in plan.workers)
    return [
        *([first, *weighed] if weighed else []),
        in_one_go(*([] if weighed else [first]), files, then, *control),
        in_one_go(*([keyed] if keyed else []), work),
    ]


def _worker(plan: Plan, host: Host, slot: WorkerSlot, *, rejoining: bool) -> Task:
    """Return the task that starts a worker. A worker that rejoins is restarted, because its slurmd was running when the
    facts were read."""
    task = started(plan, host, slot)
    return Task(host, daemons.restarted(task.step)) if rejoining else task


def files_only(
    plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts], *, running: bool = False
) -> list[Stage]:
    """Return the stages that write the files. If Slurm already runs or the operator chose settings, Slurm checks the
    files first."""
    made = {a: cluster_files(plan, a, dict(facts)) for a in plan.allocations}
    conf = next(file for file in made[plan.controller.allocation_id] if file.path == SLURM_CONF)
    look = candidate.stages(plan, hosts, facts, conf) if running or plan.settings else []
    return [*look, tuple(Task(hosts[a], prepare.files(made[a])) for a in plan.allocations)]


def services_only(plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts]) -> list[Stage]:
    """Return the stage that enables the services and makes systemd read the current drop-ins."""
    uid = common_uid(facts.values())
    tasks = [task for a in plan.allocations for task in prepared(plan, hosts[a], uid) if task.step.name == "services"]
    return [tuple(tasks)]


def _proofs(plan: Plan, head: Host, gpus: Mapping[str, int]) -> list[Stage]:
    return [
        (Task(head, proof.first_job(plan)),),
        (Task(head, proof.gpu_job(plan, sum(gpus.values()))),),
        (Task(head, proof.access(plan, gpus)), Task(head, proof.batch_job(plan))),
    ]


def prepared(plan: Plan, host: Host, uid: int) -> list[Task]:
    head, works = host.allocation_id == plan.controller.allocation_id, bool(plan.workers_on(host.allocation_id))
    steps: list[Step] = [daemons.database(), daemons.identity()] if head else []
    steps += [prepare.user(plan, uid), prepare.mpi()]
    steps.append(prepare.services((UNITS if works else HEAD_UNITS) if head else prepare.WORKER_UNITS))
    return [Task(host, step) for step in steps]


def keyed_again(head: Host, apart: Iterable[Host]) -> list[Stage]:
    """Return the stages that restart munged on every host with the key of the controller's host, even on hosts where
    the key was changed."""
    made: list[Stage] = [(Task(head, daemons.restarted(daemons.identity())),)]
    share = KeyOf(head)
    if others := tuple(rekeyed(share, host) for host in apart):
        made.append(others)
    return made


def rekeyed(share: "KeyOf", host: Host) -> Task:
    return Task(host, daemons.restarted(daemons.join_key(share)))


def started(plan: Plan, host: Host, slot: WorkerSlot) -> Task:
    return Task(host, daemons.worker(slot, beside_scheduler=slot.allocation_id == plan.controller.allocation_id))


class KeyOf:
    """The cluster's munge key, read once from the controller's host and cached for the other hosts of this run. Without
    the cache, many hosts would exceed the ten sessions that sshd accepts per connection."""

    def __init__(self, head: Host) -> None:
        self._head, self._asking, self._key = head, asyncio.Lock(), b""

    async def __call__(self) -> bytes:
        async with self._asking:
            self._key = self._key or (await shared(self._head)).key
        return self._key


@dataclass(frozen=True)
class Shared:
    key: bytes
    conf: dict[str, str]  # path -> text
    uid: int | None  # of the user that jobs run as, where it exists


async def shared(head: Host) -> Shared:
    """Read the files that all hosts of a cluster share (munge key, configuration) from the controller's host. Raises
    StepFailed if they cannot be read or the key is not that of the cluster."""
    lines = "".join(f'say {path} "$(base64 -w0 {path})"\n' for path in (KEY, *SHARED))
    lines += f'say uid "$(id -u {UNIX_USER} 2>/dev/null)"\n'
    answer = await head.script(f"fence || exit 1\n{{ {daemons.OUR_KEY}; }} || exit 2\n{lines}", step="share")
    if answer.exit == 2:
        raise StepFailed(
            "keys_differ", f"The munge key on {head.name} is not the one of the cluster.", {"host": head.name}
        )
    found = {path: base64.b64decode(answer.last(path)) for path in (KEY, *SHARED)}
    if answer.exit != 0 or not all(found.values()):
        raise StepFailed("step_failed", f"The files of the cluster on {head.name} cannot be read.", {"host": head.name})
    uid = int(answer.last("uid")) if answer.last("uid").isdigit() else None
    return Shared(found[KEY], {path: found[path].decode() for path in SHARED}, uid)
