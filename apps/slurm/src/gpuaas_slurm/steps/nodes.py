"""What is done to one worker from the controller's host: look at it, drain it, give it back, take it out of Slurm.

A drain of ours says so in its reason (`gpuaas:OPERATION: text`). A drain of anybody else is shown and left alone. One
without any reason is a worker that has just joined (admission.py): Slurm lets nobody drain without a reason.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from gpuaas_sdk.host_steps.host import Answer, Host
from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm import validate
from gpuaas_slurm.errors import FAILURES
from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import parse, shell

OURS = "gpuaas:"
MOST_JOBS = 50  # of those that hold a node, told one by one
LEAVING = ("drained", "draining")
# Whatever anybody did to it since. `$` is Slurm's mark of a node in a maintenance reservation.
REGISTERED = "(idle[*]?|mix[*]?|alloc[*]?|comp|drain|drng|maint|resv)[$]?"
JOURNAL_LINES = 1000  # that a host keeps of its own journal, whatever comes and goes

# One answer: what Slurm says of the node, and whose jobs hold it, each with the time it ends at the latest. A scheduler
# that does not answer is an error, never a node without jobs.
ASKED = """
fence || exit 1
silent() { refuse step_failed 'The scheduler does not answer.'; }
port_open 6817 || silent
"""
LOOK = """
node=$(timeout 5 sinfo -h -n {node} -o '%t|%u|%E') || silent
say node "$(head -1 <<<"$node")"
[ -n "$node" ] || exit 0
jobs=$(TZ=UTC timeout 5 squeue -h -w {node} -o '%A|%u|%a|%L|%T|%e') || silent
[ -z "$jobs" ] || sed 's/^/@job /' <<<"$jobs"
exit 0
"""
# Looked at right before and right after, in one go: a node that is empty is drained at once.
DRAIN = """
state=$(timeout 5 sinfo -h -n {node} -o %t) || silent
case ${{state%%[^a-z]*}} in
  {stays}) ;;
  *) timeout 5 scontrol update nodename={node} state=drain reason='{reason}' || exit 1 ;;
esac
"""
ALL = """
nodes=$(timeout 5 sinfo -a -h -N -o '%N|%t') || silent
sed 's/^/@node /' <<<"$nodes"
"""
ALL_IF_IT_ANSWERS = f"silent() {{ :; }}\nif port_open 6817; then {ALL} fi\n"
# Looked at once more: a person may have drained it since. `whose` is the beginning of the reason that may be undone.
# After `undrain` a node counts as not responding until the next round of pings, and a job that comes in between can
# wait for half a minute; after `idle`, which is right for a node without jobs, it does not.
UNDRAIN = """
fence || exit 1
how=undrain
seen=$(timeout 5 sinfo -h -n {node} -o '%t|%E' | head -1)
case ${{seen%%|*}} in drain|drain$) how=idle ;; esac
case ${{seen#*|}} in {whose}*|none) timeout 5 scontrol update nodename={node} state=$how || exit 1 ;; esac
exit 0
"""
REQUEUE = """
fence || exit 1
for job in {jobs}; do
  if why=$(timeout 5 scontrol requeue $job 2>&1); then say back $job; else say stays "$job|$why"; fi
done
exit 0
"""


@dataclass(frozen=True)
class Job:
    id: str
    user: str
    account: str
    left: str
    state: str
    ends_at: str | None  # at the latest; nothing for one without a time limit

    @property
    def ending(self) -> bool:
        return self.state == "COMPLETING"


@dataclass(frozen=True)
class Standing:
    """A node as Slurm shows it. `known` is False when Slurm has no such node."""

    known: bool
    state: str  # in the words of members' runtime_state
    reason: str
    by: str
    jobs: tuple[Job, ...] = ()

    @property
    def ours(self) -> bool:
        return self.reason.startswith(OURS) or (self.state in LEAVING and not self.reason)

    def drained_for(self, operation_id: str) -> bool:
        return self.reason.startswith(f"{OURS}{operation_id}:")

    @property
    def by_somebody(self) -> bool:
        return self.state in LEAVING and not self.ours

    @property
    def is_drained(self) -> bool:
        """Nothing runs on it and nothing will. Slurm says `drain` only of a node without jobs."""
        return self.state == "drained" and not self.jobs

    @property
    def free_at(self) -> str | None:
        """When the last of its jobs is over at the latest, if all of them have a limit."""
        ends = [job.ends_at for job in self.jobs]
        return max((end for end in ends if end), default=None) if all(ends) else None

    @property
    def forecast(self) -> dict[str, Any]:
        jobs = [asdict(job) for job in self.jobs[:MOST_JOBS]]
        for job in jobs:
            del job["left"]  # it changes every second and says what `ends_at` says
        return {"free_at": self.free_at, "jobs": jobs, "jobs_total": len(self.jobs)}

    @property
    def waits_for(self) -> str:
        if not self.jobs:
            return f"the node to become drained (it is {self.state})"
        first, more = self.jobs[0], len(self.jobs) - 1
        left = "with no time limit" if first.left == "UNLIMITED" else f"at most {first.left} left"
        others = f" and {more} other job{'s' if more > 1 else ''}" if more else ""
        return f"job {first.id} of {first.user} ({left}){others}"


def read(answer: Answer) -> Standing:
    state, by, reason = [*answer.last("node").split("|", 2), "", "", ""][:3]
    jobs = tuple(_job(line) for line in answer.lines.get("job", []) if line.count("|") >= 5)
    said = "" if reason.strip() in ("", "none") else reason.strip()
    return Standing(bool(state.strip()), parse.node_state(state), said, by.strip(), jobs)


def _job(line: str) -> Job:
    *words, ends = line.split("|", 5)
    return Job(*words, ends_at=f"{ends.strip()}Z" if ends.strip()[:1].isdigit() else None)


async def look(head: Host, slot: WorkerSlot) -> Answer:
    return await head.script(ASKED + LOOK.format(node=validate.word("node", slot.node)), step="look", within=15)


async def standing(head: Host, slot: WorkerSlot) -> Standing:
    return read(_answered(await look(head, slot), head, "look"))


async def states(head: Host, slots: Iterable[WorkerSlot]) -> dict[str, str]:
    """How each of these is, in the words of members' runtime_state."""
    return told(_answered(await head.script(f"{ASKED}{ALL}exit 0\n", step="look", within=15), head, "look"), slots)


def told(answer: Answer, slots: Iterable[WorkerSlot]) -> dict[str, str]:
    known = dict(line.split("|", 1) for line in answer.lines.get("node", []) if "|" in line)
    return {slot.member_id: parse.node_state(known.get(slot.node, "")) for slot in slots}


async def drain(head: Host, slot: WorkerSlot, why: str, *, anew: bool = False) -> Standing:
    """One that takes jobs (`anew`: or is drained already) is drained, and how it stands then. The reason names the
    operation, so that nobody takes it for a person's."""
    operation = validate.word("id", head.claim.operation_id)
    text = validate.plain(why)[:80] or "asked for by the platform"
    stays = "''" if anew else "'' | drain | drng"
    node = validate.word("node", slot.node)
    words = DRAIN.format(node=node, reason=f"{OURS}{operation}: {text}", stays=stays) + LOOK.format(node=node)
    return read(_answered(await head.script(ASKED + words, step="drain", within=15), head, "drain"))


async def undrain(head: Host, slot: WorkerSlot, operation_id: str = "") -> None:
    """Undoes a drain of the platform (of one operation, if it is named), never a person's."""
    whose = f"{OURS}{validate.word('id', operation_id)}:" if operation_id else OURS
    words = UNDRAIN.format(node=validate.word("node", slot.node), whose=whose)
    _answered(await head.script(words, step="undrain", within=15), head, "undrain")


async def requeue(head: Host, jobs: Iterable[Job]) -> tuple[list[str], dict[str, str]]:
    """Those that are back in the queue, and why others are not: Slurm takes back only batch jobs that allow it."""
    ids = " ".join(str(validate.whole("job", int(job.id), 1, 2**32)) for job in jobs)
    answer = _answered(await head.script(REQUEUE.format(jobs=ids), step="requeue", within=60), head, "requeue")
    stays = (line.partition("|") for line in answer.lines.get("stays", []))
    return answer.lines.get("back", []), {job: why for job, _, why in stays}


def _answered(answer: Answer, head: Host, step: str) -> Answer:
    if answer.exit != 0:
        raise FAILURES.explain(answer, host=head.name, step=step, title="Asking the scheduler", code="step_failed")
    return answer


def forget(slot: WorkerSlot) -> Step:
    """What the controller's host knows of a worker's operations goes with the worker; last, since every command of its
    operation notes its claim again."""
    member = validate.word("id", slot.member_id)
    return Step(
        name="forget_member",
        title="Removing the worker's notes from the controller's host",
        phase="removing",
        probe=f'[ ! -e "$OWN/epoch.{member}" ] && [ ! -e "$OWN/report/{member}" ]',
        act=f"""
rm -rf "$OWN/epoch.{member}" "$OWN/report/{member}"
if [ "$(wc -l <"$BASE/journal.jsonl")" -gt {2 * JOURNAL_LINES} ]; then
  tail -n {JOURNAL_LINES} "$BASE/journal.jsonl" >"$BASE/journal.new.$$"
  mv "$BASE/journal.new.$$" "$BASE/journal.jsonl"
fi
delete_old_marks
""",
    )


def delete(slot: WorkerSlot) -> Step:
    """Slurm refuses to delete a node with jobs: an honest gate. Its slurmd is stopped before, or it would come back."""
    gone = f'[ -z "$(timeout 5 sinfo -h -n {slot.node} -o %N)" ]'
    return Step(
        name="delete_node",
        title="Taking the worker out of Slurm",
        phase="removing",
        probe=f"port_open 6817 && {gone}",
        act=f"""
rm -f "$OWN/accepted.{slot.node}"
timeout 5 scontrol delete reservationname={reservation(slot)} 2>/dev/null || true
timeout 10 scontrol delete nodename={slot.node} || {gone}
""",
        unit="slurmctld",
        code="teardown_incomplete",
    )


def restart(head_is_here: bool, slot: WorkerSlot) -> Step:
    """Back means: Slurm has heard of the new process. Who drained it stays the owner of that drain; only what Slurm
    itself drained for a wrong registration, and left so after the cause was gone, is resumed."""
    port = "port_open 6817 && " if head_is_here else ""
    there = f"active slurmd && {port}{shell.node_state(slot)} | grep -Eqx '{REGISTERED}'"
    mark = '"$REPORT/again_worker"'
    return Step(
        name="again_worker",
        title="Restarting the worker and waiting until Slurm has heard of it",
        phase="starting",
        probe=f"[ -f {mark} ] && {there}",
        act=f"""
began() {{ timeout 5 scontrol show node {slot.node} | grep -o 'SlurmdStartTime=[^ ]*'; }}
before=$(began || true)
restart slurmd
heard() {{ [ "$(began || true)" != "$before" ]; }}
wait_until 10 heard || {shell.node_reason(slot)}
if {shell.node_reason(slot)} | grep -Eq '^(gres/gpu|Low )'; then scontrol update nodename={slot.node} state=resume; fi
date >{mark}
""",
        within=15,
        unit="slurmd",
        undo="stop_services",
    )


def reservation(slot: WorkerSlot) -> str:
    """Of one worker, while it is tried out before it takes work."""
    return f"gpuaas_{slot.node.replace('-', '_')}"
