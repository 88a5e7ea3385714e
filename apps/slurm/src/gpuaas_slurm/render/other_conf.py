"""The small files around slurm.conf: accounting, GPUs, control groups, the database's settings."""

from gpuaas_slurm import validate
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.slurm_conf import header

DATABASE = "slurm_acct_db"
DATABASE_USER = "slurm"
ACCOUNTS = "/etc/gpuaas-slurm/accounts.cfg"


def slurmdbd_conf(plan: Plan) -> str:
    """Render slurmdbd.conf. It has no StoragePass: MariaDB authenticates the Unix user `slurm` by its socket, so there
    is no password to store or leak."""
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
    """Render the accounts file for the accounting client: one account for the project with one user, who may submit
    jobs."""
    return f"""\
Cluster - '{plan.cluster}':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - '{plan.account}':Description='{plan.account}':Organization='{plan.account}':Fairshare=1
Parent - '{plan.account}'
User - '{plan.user}':DefaultAccount='{plan.account}':Fairshare=1
"""


def gres_conf(plan: Plan, slots: tuple[WorkerSlot, ...], gpus: tuple[str, ...]) -> str:
    """Render gres.conf with one line per GPU of this host, by device file, because Debian's Slurm has no NVML. A host
    lists only its own GPUs, so that a new worker changes no file on the others."""
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
    """Render the MariaDB settings whose defaults slurmdbd warns about. The buffer pool is reserved, not filled: MariaDB
    uses 110 MB at start."""
    return header(plan.instance_id) + "[mariadbd]\ninnodb_buffer_pool_size=512M\ninnodb_lock_wait_timeout=900\n"


def gres(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    """Return the worker's GRES, such as gpu:a100:2, or gpu:a100:1,gpu:h100:1 on a host with both types; empty without
    GPUs."""
    kinds = [plan.type_of(slot, device) for device in facts.gpus]
    return ",".join(f"gpu:{kind}:{kinds.count(kind)}" for kind in dict.fromkeys(kinds))


def features(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    """Return the GPU types as node features, by which partitions select workers. Empty without GPUs."""
    kinds = dict.fromkeys(plan.type_of(slot, device) for device in facts.gpus)
    return validate.word("feature", ",".join(kinds)) if kinds else ""


def slurmd_options(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    conf = f"RealMemory={facts.usable_memory_mb}"
    if facts.gpus:
        conf += f" Gres={gres(plan, slot, facts)} Feature={features(plan, slot, facts)}"
    return f'-Z -N {slot.node} --conf "{conf}"'
