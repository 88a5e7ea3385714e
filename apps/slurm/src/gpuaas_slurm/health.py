"""The health of a cluster: named conditions, each with (ok, sentence), and one status and sentence for the cluster.

Pure functions of what was observed. Equal observations give equal sentences, so a sentence contains no duration and no
count that changes by itself. The sentence of a failed condition includes what to do. A person's drain is shown and
never undone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpuaas_slurm.conditions import SKEW_ALLOWED_S
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.probes import HeadSeen, HostSeen, Node
from gpuaas_slurm.slurm import hints
from gpuaas_slurm.slurm.node_control import OURS

TAKES_JOBS = ("idle", "busy")
SLURM_ITSELF = "slurm"
MOST_TOLD = 5  # workers in one sentence


def put_back(name: str) -> str:
    """Return the command with which a person lets the platform rewrite the files and Slurm read them: an update with
    the same settings."""
    return f"`gpuaas instance update {name}`"


@dataclass(frozen=True)
class Worker:
    """A worker as the platform, Slurm and its own host report it."""

    instance: str  # its name, for commands
    slot: WorkerSlot
    member_state: str
    node: Node | None
    host: HostSeen | None  # None: not looked at this time
    in_work: bool = False  # an operation of its own is under way
    missed: int = 0  # looks in a row at which its host did not answer
    silent: int = 0  # looks in a row at which Slurm heard nothing of it; just given back, it is silent for a moment

    def command(self, verb: str) -> str:
        return f"`gpuaas member {verb} {self.instance} worker/{self.slot.ordinal}`"

    @property
    def takes_jobs(self) -> bool:
        return self.node is not None and self.node.state in TAKES_JOBS and not self.trouble

    @property
    def drained(self) -> bool:
        return self.node is not None and self.node.state in ("drained", "draining")

    @property
    def ours(self) -> bool:
        return self.node is not None and self.node.reason.startswith(OURS)

    @property
    def as_asked(self) -> bool:
        return self.in_work or (self.drained and self.member_state in ("drained", "draining"))

    @property
    def trouble(self) -> str:
        """Return why a worker that should take jobs does not, and what to do; empty when it is healthy."""
        return "" if self.as_asked else next((sentence for ask in _TROUBLES if (sentence := ask(self))), "")

    @property
    def runtime_state(self) -> str:
        if self.node is None:
            return "lost"
        return "down" if self.node.state in TAKES_JOBS and self.trouble else self.node.state


def _unknown(one: Worker) -> str:
    if one.node is not None:
        return ""
    if one.member_state == "failed":
        return f"The last operation on {one.slot.host} failed: {one.command('retry')}, or {one.command('remove')}."
    return f"Slurm does not know {one.slot.host} any more. Restart it: {one.command('restart')}."


def _drain(one: Worker) -> str:
    if not one.drained or one.node is None:
        return ""
    since = f" since {one.node.since}" if one.node.since else ""
    if one.ours:
        return (
            f"{one.slot.host} kept a drain of the platform ({one.node.reason}). Give it back: {one.command('undrain')}."
        )
    if one.node.by == SLURM_ITSELF:
        sentence = f"Slurm itself drained {one.slot.host}{since}: {one.node.reason}. Fix that"
        return f"{sentence}, then on the controller: {hints.undrain(one.slot.node, 'resume')}."
    return (
        f"{one.slot.host} was drained by {one.node.by or 'an unknown user'}{since}: {one.node.reason}. "
        f"That is left alone; to take it back, on the controller: {hints.undrain(one.slot.node)}."
    )


def _host_away(one: Worker) -> str:
    heard = one.node is not None and one.node.state in TAKES_JOBS and not one.node.silent
    if one.host is None or one.host.reached or (heard and one.missed < 2):
        return ""
    way_out = f"Bring it back, or {one.command('replace')}."
    return f"{one.slot.host} does not answer: it is off, or its network is gone. {way_out}"


def _service_dead(one: Worker) -> str:
    if one.host is None or not one.host.reached or one.host.runs("slurmd"):
        return ""
    state = one.host.units.get("slurmd", "gone")
    return f"slurmd on {one.slot.host} is {state}. Start it: {one.command('restart')}."


def _not_up(one: Worker) -> str:
    if one.node is None or (one.node.state in TAKES_JOBS and one.silent < 2):
        return ""
    why = f": {one.node.reason}" if one.node.reason else ""
    state = "silent" if one.node.silent else one.node.state
    return f"{one.slot.host} is {state} in Slurm{why}. Try {one.command('restart')}."


_TROUBLES: tuple[Callable[[Worker], str], ...] = (_unknown, _drain, _host_away, _service_dead, _not_up)


@dataclass(frozen=True)
class Condition:
    key: str
    ok: bool | None  # None: unknown
    sentence: str

    def row(self) -> dict[str, str]:
        status = {True: "True", False: "False", None: "Unknown"}[self.ok]
        reason = {True: "seen", False: "not_so", None: "not_seen"}[self.ok]
        return {"type": self.key, "status": status, "reason": reason, "message": self.sentence[:1900]}


@dataclass(frozen=True)
class Health:
    status: str
    sentence: str
    conditions: tuple[Condition, ...]


def judge(name: str, plan: Plan, head: HeadSeen, workers: Iterable[Worker]) -> Health:
    known = tuple(workers)
    if not head.reached:
        return _unknown_state(plan, head)
    scheduler = _scheduler(name, plan, head)
    rows = (
        scheduler,
        _workers(known)
        if scheduler.ok
        else Condition("worker", None, "The scheduler does not say how its workers are."),
        _accounting(plan, head),
        _configuration(name, plan, head, known),
        _clock(plan, head, known),
    )
    wrong = [row for row in rows if row.ok is False]
    if not wrong:
        return Health("healthy", rows[1].sentence, rows)
    return Health(_status(head, known, scheduler), wrong[0].sentence, rows)


def _status(head: HeadSeen, workers: tuple[Worker, ...], scheduler: Condition) -> str:
    if not scheduler.ok:
        return "progressing" if head.units.get("slurmctld") == "activating" else "failed"
    if any(one.takes_jobs or one.in_work for one in workers):
        return "degraded"
    return "drained" if all(one.drained for one in workers) else "failed"


def _unknown_state(plan: Plan, head: HeadSeen) -> Health:
    sentence = (
        f"{plan.controller.host}, the controller's host, does not answer, so the state of {plan.cluster} is unknown. "
        "Bring the host or its network back."
    )
    keys = ("scheduler", "worker", "accounting", "configuration", "clock")
    return Health("unknown", sentence, tuple(Condition(key, None, sentence) for key in keys))


def _scheduler(name: str, plan: Plan, head: HeadSeen) -> Condition:
    host = plan.controller.host
    if head.answers:
        return Condition("scheduler", True, "The scheduler answers.")
    state = head.units.get("slurmctld", "gone")
    if state == "activating":
        return Condition("scheduler", False, f"slurmctld on {host} is starting.")
    if state != "active":
        sentence = f"slurmctld on {host} is {state}: no job starts. Start it: `systemctl start slurmctld` on {host}"
        return Condition("scheduler", False, f"{sentence}, or `gpuaas instance restart {name}`.")
    sentence = f"slurmctld on {host} runs and does not answer. Read /var/log/slurm/slurmctld.log there"
    return Condition("scheduler", False, f"{sentence}, or `gpuaas instance restart {name}`.")


def _accounting(plan: Plan, head: HeadSeen) -> Condition:
    host, wait = plan.controller.host, "Jobs go on and their records wait"
    if not head.runs("mariadb") or not head.database:
        state = "does not answer" if head.runs("mariadb") else f"is {head.units.get('mariadb', 'gone')}"
        sentence = f"MariaDB on {host} {state}. {wait}; start it: `systemctl start mariadb` on {host}."
        return Condition("accounting", False, sentence)
    if not head.runs("slurmdbd") or not head.accounts:
        state = "does not answer" if head.runs("slurmdbd") else f"is {head.units.get('slurmdbd', 'gone')}"
        sentence = f"slurmdbd on {host} {state}. {wait}; start it: `systemctl start slurmdbd` on {host}."
        return Condition("accounting", False, sentence)
    return Condition("accounting", True, "The accounting service and its database answer.")


def _workers(workers: tuple[Worker, ...]) -> Condition:
    troubles = [sentence for one in workers if (sentence := one.trouble)]
    usable = sum(one.takes_jobs for one in workers)
    asked = [one.slot.host for one in workers if one.as_asked and not one.in_work]
    in_work = [one.slot.host for one in workers if one.in_work]
    many = "worker takes" if len(workers) == 1 else "workers take"
    count = f"{usable} of {len(workers)} {many} jobs."
    count += f" Drained, as asked: {', '.join(asked)}." if asked else ""
    count += f" An operation works on {', '.join(in_work)}." if in_work else ""
    if troubles:
        more = f"{len(troubles) - MOST_TOLD} more are in trouble." if len(troubles) > MOST_TOLD else ""
        return Condition("worker", False, " ".join([count, *troubles[:MOST_TOLD], more]).strip())
    if not usable and not in_work:
        return Condition("worker", False, count)
    return Condition("worker", True, count)


def _configuration(name: str, plan: Plan, head: HeadSeen, workers: tuple[Worker, ...]) -> Condition:
    hosts = [(plan.controller.host, head), *((one.slot.host, one.host) for one in workers if one.host)]
    wrong = [f"{path} on {host} was {how} by hand" for host, seen in hosts for how, path, _ in seen.files]
    if wrong:
        faults = "; ".join(dict.fromkeys(wrong))
        return Condition("configuration", False, f"{faults}. To put it back: {put_back(name)}.")
    if not head.files_known:
        sentence = f"No checksums of the files were recorded. {put_back(name)} records them."
        return Condition("configuration", None, sentence)
    return Condition("configuration", True, "The files of the cluster are as the platform wrote them.")


def _clock(plan: Plan, head: HeadSeen, workers: tuple[Worker, ...]) -> Condition:
    hosts = [(plan.controller.host, head), *((one.slot.host, one.host) for one in workers if one.host)]
    for host, seen in hosts:
        if abs(seen.skew_s) > SKEW_ALLOWED_S:
            way = "ahead" if seen.skew_s > 0 else "behind"
            far = (
                "more than an hour" if abs(seen.skew_s) > 3600 else f"about {max(1, round(abs(seen.skew_s) / 60))} min"
            )
            sentence = (
                f"The clock of {host} is {far} {way}; munge refuses that. Set it: `timedatectl set-ntp true` there."
            )
            return Condition("clock", False, sentence)
    return Condition("clock", True, "The clocks agree.")
