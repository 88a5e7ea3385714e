"""The order in which a cluster comes to life. Steps of one stage do not need each other and run at once.

database -> accounting -> accounts -> scheduler never shows InvalidAccount: associations that are there before slurmctld
starts cannot be lost on the way to it (performance.md section 5). The worker starts only at an open port 6817.
"""

from collections.abc import Mapping

from gpuaas_slurm.facts import UNITS, HostFacts
from gpuaas_slurm.hosts import Host
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.render.files import cluster_files
from gpuaas_slurm.steps import daemons, prepare, proof
from gpuaas_slurm.steps.base import Stage, Step, Task


def stages(plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    made = {a: cluster_files(plan, a, dict(facts)) for a in plan.allocations}
    gpus = sum(len(facts[w.allocation_id].gpus) for w in plan.workers)
    return [
        tuple(Task(hosts[a], prepare.preflight()) for a in plan.allocations),
        tuple(Task(hosts[a], prepare.files(made[a])) for a in plan.allocations),
        _prepare(plan, hosts),
        (Task(head, daemons.accounting()),),
        (Task(head, daemons.accounts(plan)),),
        (Task(head, daemons.scheduler(plan)),),
        tuple(Task(hosts[w.allocation_id], daemons.worker(w)) for w in plan.workers),
        (Task(head, proof.first_job(plan)),),
        (Task(head, proof.gpu_job(plan, gpus)),),
        (Task(head, proof.access(plan)), Task(head, proof.batch_job(plan))),
    ]


def _prepare(plan: Plan, hosts: Mapping[str, Host]) -> Stage:
    tasks: list[Task] = []
    for allocation_id in plan.allocations:
        head = allocation_id == plan.controller.allocation_id
        steps: list[Step] = [daemons.database()] if head else []
        steps += [daemons.identity(), prepare.user(plan), prepare.mpi()]
        steps.append(prepare.services(UNITS if head else prepare.WORKER_UNITS))
        tasks += [Task(hosts[allocation_id], step) for step in steps]
    return tuple(tasks)
