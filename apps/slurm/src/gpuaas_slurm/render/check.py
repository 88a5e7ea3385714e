"""A checker for the candidate slurm.conf: 22.05 has no test flag and slurmctld dies of a bad file, so we look first."""

KNOWN = frozenset(
    word
    for line in """
    ClusterName SlurmctldHost SlurmctldParameters SlurmUser AuthType CredType MpiDefault MailProg SlurmctldPort
    SlurmdPort StateSaveLocation SlurmdSpoolDir SlurmctldPidFile SlurmdPidFile SlurmctldLogFile SlurmdLogFile
    ProctrackType TaskPlugin JobAcctGatherType JobAcctGatherFrequency ReturnToService SlurmdTimeout SelectType
    SelectTypeParameters DefMemPerCPU SchedulerType SchedulerParameters GresTypes AccountingStorageType
    AccountingStorageHost AccountingStoragePort AccountingStorageEnforce AccountingStorageTRES EnforcePartLimits
    MaxNodeCount TreeWidth PartitionName""".splitlines()
    for word in line.split()
)


class BadConfig(ValueError):
    """The rendered file would not be understood as meant."""


def slurm_conf(text: str) -> None:
    seen: list[str] = []
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        key, sep, value = line.partition("=")
        if key not in KNOWN or not sep or not value.strip():
            raise BadConfig(f"slurm.conf would hold the line {line!r}")
        seen.append(key)
    twice = {key for key in seen if seen.count(key) > 1 and key != "PartitionName"}
    if twice or "PartitionName" not in seen or "ClusterName" not in seen:
        raise BadConfig(f"slurm.conf is not whole: twice {sorted(twice)}, {len(seen)} settings")
