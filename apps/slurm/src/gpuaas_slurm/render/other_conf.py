"""The small files around slurm.conf: accounting, GPUs, control groups, the database's settings."""

from gpuaas_slurm import validate
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.slurm_conf import header

DATABASE = "slurm_acct_db"
DATABASE_USER = "slurm"
ACCOUNTS = "/etc/gpuaas-slurm/accounts.cfg"


def slurmdbd_conf(plan: Plan) -> str:
    """No StoragePass: MariaDB knows the Unix user `slurm` by its socket, so there is no password to keep or leak."""
    return (
        header(plan.instance_id)
        + f"""\
DbdHost=localhost
DbdAddr={plan.controller.address}
DbdPort=6819
AuthType=auth/munge
SlurmUser=slurm
PidFile=/run/slurmdbd.pid
LogFile=/var/log/slurm/slurmdbd.log
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={DATABASE_USER}
StorageLoc={DATABASE}
"""
    )


def accounts_cfg(plan: Plan) -> str:
    """Who may submit, in the form that the accounting client loads: one account for the project, one user in it."""
    return f"""\
Cluster - '{plan.cluster}':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - '{plan.account}':Description='{plan.account}':Organization='{plan.account}':Fairshare=1
Parent - '{plan.account}'
User - '{plan.user}':DefaultAccount='{plan.account}':Fairshare=1
"""


def gres_conf(plan: Plan, slots: tuple[WorkerSlot, ...], gpus: tuple[str, ...]) -> str:
    """One line per GPU of this host; Debian's Slurm has no NVML, so files are named. A host knows only its own, so
    that a worker that comes later changes no file of the others."""
    lines = [
        f"NodeName={s.node} Name=gpu Type={plan.type_of(s, device)} Flags=nvidia_gpu_env"
        f" File={validate.word('device', device)}"
        for s in slots
        for device in gpus
    ]
    return header(plan.instance_id) + "".join(line + "\n" for line in lines)


def cgroup_conf(plan: Plan, confinement: str) -> str:
    text = header(plan.instance_id)
    if confinement == "linuxproc":
        return text + "CgroupPlugin=cgroup/v1\n"
    return text + f"CgroupPlugin={confinement}\nConstrainCores=yes\nConstrainDevices=yes\nConstrainRAMSpace=yes\n"


def mariadb_conf(plan: Plan) -> str:
    """slurmdbd complains about the defaults of both; the pool is only reserved, not used up (110 MB at start)."""
    return header(plan.instance_id) + "[mariadbd]\ninnodb_buffer_pool_size=512M\ninnodb_lock_wait_timeout=900\n"


def gres(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    """gpu:a100:2, or gpu:a100:1,gpu:h100:1 on a machine with both."""
    kinds = [plan.type_of(slot, device) for device in facts.gpus]
    return ",".join(f"gpu:{kind}:{kinds.count(kind)}" for kind in dict.fromkeys(kinds))


def features(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    """The GPU types once more, for partitions that choose workers by type. Empty without GPUs."""
    kinds = dict.fromkeys(plan.type_of(slot, device) for device in facts.gpus)
    return validate.word("feature", ",".join(kinds)) if kinds else ""


def slurmd_options(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    conf = f"RealMemory={facts.usable_memory_mb}"
    if facts.gpus:
        conf += f" Gres={gres(plan, slot, facts)} Feature={features(plan, slot, facts)}"
    return f'-Z -N {slot.node} --conf "{conf}"'
