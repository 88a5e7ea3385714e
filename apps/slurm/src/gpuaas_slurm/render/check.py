"""Checks a candidate slurm.conf and raises BadConfig if it is invalid. Slurm 22.05 has no test flag, and slurmctld
exits on an invalid file."""

from gpuaas_slurm.errors import BadConfig
from gpuaas_slurm.settings import ALLOWED
from gpuaas_slurm.slurm.parse import fields

KNOWN = frozenset(
    word
    for line in """
    ClusterName SlurmctldHost SlurmctldParameters SlurmUser AuthType CredType MpiDefault MailProg SlurmctldPort
    SlurmdPort StateSaveLocation SlurmdSpoolDir SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile
    ProctrackType TaskPlugin JobAcctGatherType JobAcctGatherFrequency ReturnToService SlurmdTimeout SelectType
    SelectTypeParameters DefMemPerCPU SchedulerType SchedulerParameters GresTypes AccountingStorageType
    AccountingStorageHost AccountingStoragePort AccountingStorageEnforce AccountingStorageTRES EnforcePartLimits
    MaxNodeCount TreeWidth NodeSet PartitionName""".splitlines()
    for word in line.split()
) | frozenset(ALLOWED)
SEVERAL = ("NodeSet", "PartitionName")


def slurm_conf(text: str) -> None:
    seen: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, sep, value = line.partition("=")
        if key not in KNOWN or not sep or not value.strip():
            raise BadConfig(f"slurm.conf would hold the line {line!r}")
        seen.append(key)
    twice = {key for key in seen if seen.count(key) > 1 and key not in SEVERAL}
    if twice or "PartitionName" not in seen or "ClusterName" not in seen:
        raise BadConfig(f"slurm.conf is not whole: twice {sorted(twice)}, {len(seen)} settings")
    _partitions([fields(line) for line in text.splitlines()])


def _partitions(lines: list[dict[str, str]]) -> None:
    """Raise BadConfig if a partition line is invalid. Slurm's clients accept invalid keys there, but slurmctld exits on
    them."""
    sets = [line["NodeSet"] for line in lines if "NodeSet" in line]
    made = [line for line in lines if "PartitionName" in line]
    names = [line["PartitionName"] for line in made]
    lost = [line["PartitionName"] for line in made if line.get("Nodes") not in ("ALL", *sets)]
    if lost or len(set(names)) < len(names) or len(set(sets)) < len(sets):
        raise BadConfig(f"slurm.conf would hold a partition twice or without its workers: {', '.join(lost or names)}")
    if [line.get("Default") for line in made].count("YES") != 1:
        raise BadConfig("slurm.conf needs exactly one default partition")
