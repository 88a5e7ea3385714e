"""Renders slurm.conf. Workers are dynamic nodes (`slurmd -Z`), so adding a worker never changes this file.

Reasons for the less obvious lines: research/performance.md sections 3-5 and research/slurm-and-peers.md section 5.
"""

from gpuaas_slurm import validate
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Partition, Plan

PROCTRACK = {
    "cgroup/v2": ("proctrack/cgroup", "task/cgroup,task/affinity"),
    "cgroup/v1": ("proctrack/cgroup", "task/cgroup,task/affinity"),
    "linuxproc": ("proctrack/linuxproc", "task/none"),
}


def header(instance_id: str) -> str:
    return f"# Managed by GPUaaS: instance {validate.word('id', instance_id)}\n# Changes by hand are overwritten.\n"


def slurm_conf(plan: Plan, controller: HostFacts, workers: tuple[HostFacts, ...]) -> str:
    proctrack, task = PROCTRACK[weakest(workers)]
    configless = "SlurmctldParameters=enable_configless\n" if len(plan.allocations) > 1 else ""
    memory = min(w.usable_memory_mb // max(1, w.cpus) for w in workers)
    return (
        header(plan.instance_id)
        + f"""\
ClusterName={plan.cluster}
SlurmctldHost={controller.hostname}({plan.controller.address})
{configless}SlurmUser=slurm
AuthType=auth/munge
CredType=cred/munge
MpiDefault=none
MailProg=/bin/true

# Files and ports
SlurmctldPort=6817
SlurmdPort=6818
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log

# Jobs on the host
ProctrackType={proctrack}
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=30
ReturnToService=2
SlurmdTimeout=60

# Scheduling; batch_sched_delay=0 starts a batch job at once instead of seconds later
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={max(1, memory)}
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0
GresTypes=gpu

# Accounting: a job without a known user and account is refused at submit, never left pending
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={plan.controller.address}
AccountingStoragePort=6819
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
EnforcePartLimits=ALL

# Workers join by themselves (slurmd -Z)
MaxNodeCount=64
TreeWidth=65533
"""
        + _partitions(plan)
        + _chosen(plan)
    )


def _partitions(plan: Plan) -> str:
    """Render the partition lines. A worker has its GPU types as features, so a partition with a GPU type needs no list
    of workers."""
    kinds = sorted({one.gpu_type for one in plan.partitions if one.gpu_type})
    sets = "".join(f"NodeSet=gpu_{kind} Feature={kind}\n" for kind in kinds)
    return sets + "".join(_partition(one, first=one is plan.partitions[0]) for one in plan.partitions)


def _partition(one: Partition, *, first: bool) -> str:
    nodes = f"gpu_{one.gpu_type}" if one.gpu_type else "ALL"
    tier = f" PriorityTier={one.tier}" if one.tier is not None else ""
    return (
        f"PartitionName={one.name} Nodes={nodes} Default={'YES' if first else 'NO'} DefaultTime={one.minutes}"
        f" MaxTime={one.most_minutes or 'INFINITE'}{tier} State=UP\n"
    )


def _chosen(plan: Plan) -> str:
    """Render the settings that the operator chose from the table in settings.py; empty if there are none."""
    if not plan.settings:
        return ""
    return "\n# Chosen by the operator\n" + "".join(f"{name}={value}\n" for name, value in plan.settings)


def weakest(workers: tuple[HostFacts, ...]) -> str:
    """Return the confinement that all workers have, or linuxproc if they differ, because all workers share one
    slurm.conf."""
    kinds = {w.confinement for w in workers}
    return kinds.pop() if len(kinds) == 1 else "linuxproc"
