"""All files of one host, with owner and mode; the `files` step copies them in one archive."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.render import check, other_conf, units
from gpuaas_slurm.render.slurm_conf import slurm_conf, weakest

SLURM_CONF, CGROUP_CONF = SHARED = ("/etc/slurm/slurm.conf", "/etc/slurm/cgroup.conf")


@dataclass(frozen=True)
class File:
    path: str
    text: str
    mode: int = 0o644
    owner: str = "root"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def cluster_files(plan: Plan, allocation_id: str, facts: dict[str, HostFacts]) -> tuple[File, ...]:
    made: list[File] = [*_common(plan, facts), *_of_host(plan, allocation_id, facts[allocation_id])]
    if allocation_id == plan.controller.allocation_id:
        made += _controller(plan)
    return tuple(made)


def joining_files(plan: Plan, allocation_id: str, facts: HostFacts, shared: Mapping[str, str]) -> tuple[File, ...]:
    """Return the files of a worker that joins a running cluster; shared files are copied from the controller's host."""
    check.slurm_conf(shared[SLURM_CONF])
    return (*(File(path, shared[path]) for path in SHARED), *_of_host(plan, allocation_id, facts))


def _of_host(plan: Plan, allocation_id: str, facts: HostFacts) -> list[File]:
    slots = plan.workers_on(allocation_id)
    made = [
        File("/etc/slurm/gres.conf", other_conf.gres_conf(plan, slots, facts.gpus)),
        File(_dropin("munge"), units.unit_dropin(plan)),
    ]
    for slot in slots:
        made.append(File("/etc/gpuaas-slurm/slurmd.env", units.slurmd_env(plan, slot, facts)))
        made.append(File(_dropin("slurmd"), units.slurmd_dropin(plan, slot)))
    return made


def _common(plan: Plan, facts: dict[str, HostFacts]) -> list[File]:
    workers = tuple(facts[w.allocation_id] for w in plan.workers)
    conf = slurm_conf(plan, facts[plan.controller.allocation_id], workers)
    check.slurm_conf(conf)
    return [
        File(SLURM_CONF, conf),
        File(CGROUP_CONF, other_conf.cgroup_conf(plan, weakest(workers))),
    ]


def _controller(plan: Plan) -> list[File]:
    return [
        File("/etc/slurm/slurmdbd.conf", other_conf.slurmdbd_conf(plan), 0o600, "slurm"),
        File(other_conf.ACCOUNTS, other_conf.accounts_cfg(plan)),
        File("/etc/gpuaas-slurm/quickack", units.quickack(plan), 0o755),
        File("/etc/mysql/mariadb.conf.d/60-gpuaas-slurm.cnf", other_conf.mariadb_conf(plan)),
        File(_dropin("slurmdbd"), units.slurmdbd_dropin(plan)),
        File(_dropin("slurmctld"), units.slurmctld_dropin(plan)),
    ]


def _dropin(unit: str) -> str:
    return f"/etc/systemd/system/{unit}.service.d/50-gpuaas.conf"


def archive(files: tuple[File, ...]) -> bytes:
    """Pack the files into one tar, which root unpacks at /."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in files:
            info = tarfile.TarInfo(file.path.lstrip("/"))
            data = file.text.encode()
            info.size, info.mode, info.uname, info.gname = len(data), file.mode, file.owner, file.owner
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
