"""The allowed settings: which further keys of slurm.conf an operator may set, with which values, and the effect of a
change.

It is a table, so that the manifest's form, the errors and the restarts come from the same rows. Each row was tested on
Slurm 22.05: `pushed` keys take effect with a reconfigure, the others when slurmctld starts. All other keys are
rejected, with the reason.
"""

import re
from dataclasses import dataclass
from typing import Any

from gpuaas_sdk.host_steps.validate import BadWord

from gpuaas_slurm.validate import whole

PUSHED, RESTART = "pushed", "needs_restart"
SENTENCES = {
    PUSHED: "Slurm takes it up while jobs run; nothing is restarted.",
    RESTART: "slurmctld is restarted; running jobs go on, and new ones wait for a few seconds.",
}


@dataclass(frozen=True)
class Number:
    low: int
    high: int

    def text(self, name: str, value: object) -> str:
        return str(whole(name, value, self.low, self.high))

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class OneOf:
    values: tuple[str, ...]

    def text(self, name: str, value: object) -> str:
        if value not in self.values:
            raise BadWord(name, value, f"one of {', '.join(self.values)}")
        return str(value)

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


@dataclass(frozen=True)
class Words:
    """A text value that only Slurm can fully check. The pattern ensures that the value stays on its line of
    slurm.conf."""

    pattern: str
    expected: str

    def text(self, name: str, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value, re.ASCII):
            raise BadWord(name, value, self.expected)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{self.pattern}$", "maxLength": 200, "x-message": f"{self.expected}"}


@dataclass(frozen=True)
class Setting:
    title: str
    rule: Number | OneOf | Words
    effect: str = PUSHED


YES_NO = OneOf(("YES", "NO"))
SWITCH = Number(0, 1)
WEIGHT = Number(0, 1_000_000)
SPAN = Words(r"[0-9]{1,4}(-[0-9]{1,2}(:[0-9]{1,2}){0,2}|(:[0-9]{1,2}){1,2})?", "a time: minutes, H:M:S, D-H or D-H:M:S")
FLAGS = Words(
    r"[A-Za-z][A-Za-z0-9_]{0,30}(,[A-Za-z][A-Za-z0-9_]{0,30}){0,9}", "up to ten flags with commas between them"
)
LEVEL = OneOf(("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3"))

ALLOWED: dict[str, Setting] = {
    "BatchStartTimeout": Setting("Seconds a batch job may take to start", Number(1, 3600)),
    "CompleteWait": Setting("Seconds to wait for a finishing job before the next one", Number(0, 600)),
    "DebugFlags": Setting("What slurmctld writes down in detail", FLAGS),
    "DefCpuPerGPU": Setting("CPUs a job gets per GPU unless it says", Number(1, 512)),
    "DisableRootJobs": Setting("Whether root may run no jobs", YES_NO),
    "InactiveLimit": Setting("Seconds after which an srun that does nothing is ended", Number(0, 65_000)),
    "JobRequeue": Setting("Whether batch jobs are requeued after a failed node", SWITCH),
    "KillOnBadExit": Setting("Whether a step ends when one of its tasks fails", SWITCH),
    "KillWait": Setting("Seconds between a job's warning and its end", Number(1, 3600)),
    "MaxArraySize": Setting("Largest index of a job array, plus one", Number(1, 1_000_000)),
    "MaxJobCount": Setting("Jobs that the scheduler keeps in mind at most", Number(100, 1_000_000), RESTART),
    "MaxStepCount": Setting("Steps that one job may have", Number(1, 1_000_000)),
    "MessageTimeout": Setting("Seconds that a message may take", Number(5, 100)),
    "MinJobAge": Setting("Seconds that a finished job stays visible in the queue", Number(2, 86_400)),
    "OverTimeLimit": Setting("Minutes that a job may overrun its time limit", Number(0, 1440)),
    "PreemptExemptTime": Setting("How long a job runs before it can be preempted", SPAN),
    "PreemptMode": Setting("What happens to a preempted job", OneOf(("OFF", "CANCEL", "REQUEUE")), RESTART),
    "PreemptType": Setting("Which jobs preempt others", OneOf(("preempt/none", "preempt/partition_prio")), RESTART),
    "PriorityDecayHalfLife": Setting("After which time past usage counts half", SPAN),
    "PriorityFavorSmall": Setting("Whether small jobs go first", YES_NO),
    "PriorityMaxAge": Setting("After which time in the queue age counts fully", SPAN),
    "PriorityType": Setting("How jobs are ordered", OneOf(("priority/basic", "priority/multifactor")), RESTART),
    "PriorityWeightAge": Setting("Weight of a job's time in the queue", WEIGHT),
    "PriorityWeightFairshare": Setting("Weight of past usage", WEIGHT),
    "PriorityWeightJobSize": Setting("Weight of a job's size", WEIGHT),
    "PriorityWeightPartition": Setting("Weight of the partition", WEIGHT),
    "PriorityWeightQOS": Setting("Weight of the quality of service", WEIGHT),
    "ResvOverRun": Setting("Minutes that a job may overrun its reservation", Number(0, 1440)),
    "SlurmctldDebug": Setting("How much slurmctld writes into its log", LEVEL),
    "SlurmdDebug": Setting("How much slurmd writes into its log", LEVEL),
    "UnkillableStepTimeout": Setting("Seconds after which a step that will not end is given up", Number(60, 3600)),
    "WaitTime": Setting("Seconds that srun waits for the other tasks after the first has ended", Number(0, 65_000)),
}
NEEDS_RESTART = tuple(key for key, setting in ALLOWED.items() if setting.effect == RESTART)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# What render/slurm_conf.py writes, and what would speak about the same things.
MANAGED = _words(
    """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageHost AccountingStoragePort
    AccountingStorageTRES AccountingStorageType AccountingStoreFlags AuthType BackupController ClusterName
    CommunicationParameters ControlMachine CredType DbdPort DefMemPerCPU DefMemPerGPU DefMemPerNode DownNodes
    EnforcePartLimits FrontendName GresTypes JobAcctGatherFrequency JobAcctGatherType MailProg MaxNodeCount
    MpiDefault NodeName NodeSet PartitionName PrivateData ProctrackType ReturnToService RoutePlugin
    SchedulerParameters SchedulerType SelectType SelectTypeParameters SlurmUser SlurmctldHost SlurmctldLogFile
    SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
    SlurmdSpoolDir SlurmdTimeout StateSaveLocation TaskPlugin TopologyPlugin TreeWidth
    """
)
DANGEROUS = _words(
    """
    AuthAltParameters AuthAltTypes AuthInfo BurstBufferType CliFilterPlugins Epilog EpilogSlurmctld
    HealthCheckInterval HealthCheckNodeState HealthCheckProgram Include JobCompLoc JobCompType JobContainerType
    JobSubmitPlugins LaunchParameters MCSParameters MCSPlugin PlugStackConfig PluginDir PrEpPlugins Prolog
    PrologFlags PrologSlurmctld PropagateResourceLimits RebootProgram ResumeFailProgram ResumeProgram
    SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmdUser SrunEpilog SrunProlog SuspendProgram TaskEpilog
    TaskProlog UnkillableStepProgram VSizeFactor X11Parameters
    """
)
REFUSALS = {
    MANAGED: "The app writes {name} itself: the cluster, or another input, depends on it.",
    DANGEROUS: "{name} can run programs as root, or open the cluster to others; the app does not pass it on.",
}
UNKNOWN = (
    "{name} is not on this app's list: Slurm 22.05 has no such setting, or the effect of changing it is untested."
    " Names are written as in slurm.conf(5)."
)


class BadSetting(BadWord):
    """A key that is not allowed; the message gives the reason."""

    def __init__(self, name: str, why: str) -> None:
        ValueError.__init__(self, why)
        self.what = name


def read(value: object) -> tuple[tuple[str, str], ...]:
    """Return the input `slurm_conf` as names and values for slurm.conf, in the order of the table. Raises BadSetting
    for a key that is not allowed, BadWord for an invalid value."""
    if not isinstance(value, dict):
        raise BadWord("slurm_conf", value, "names and values of settings")
    for name in value:
        if name not in ALLOWED:
            raise BadSetting(str(name), why_not(str(name)))
    return tuple((name, one.rule.text(name, value[name])) for name, one in ALLOWED.items() if name in value)


def why_not(name: str) -> str:
    """Return why a key of slurm.conf is not allowed. The lookup ignores case, as Slurm does."""
    for names, sentence in REFUSALS.items():
        if name.lower() in {known.lower() for known in names}:
            return sentence.format(name=repr(name)[1:60].rstrip("'"))
    return UNKNOWN.format(name=repr(name)[:60])


def schema() -> dict[str, Any]:
    """Return the JSON schema of the settings for the manifest: a form with the allowed keys, and the reason why each
    other key is rejected."""
    return {
        "type": "object",
        "title": "Further settings of Slurm",
        "description": "Keys of slurm.conf from the app's list, as slurm.conf(5) explains them.",
        "properties": {name: {"title": one.title, **one.rule.schema()} for name, one in ALLOWED.items()},
        "patternProperties": {
            f"^({'|'.join(names)})$": {"not": {}, "x-message": sentence} for names, sentence in REFUSALS.items()
        },
        "additionalProperties": {"not": {}, "x-message": UNKNOWN},
    }


def effects() -> dict[str, dict[str, str]]:
    return {
        f"/slurm_conf/{name}": {"effect": one.effect, "sentence": SENTENCES[one.effect]}
        for name, one in ALLOWED.items()
    }
