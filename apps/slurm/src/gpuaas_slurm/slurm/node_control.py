"""Node control for reconcilers: reads, drains and undrains a node and requeues its jobs, with typed results.

Every function runs one fenced script on the controller's host. A drain by the platform names its operation in the
reason (`gpuaas:OPERATION: text`). Any other drain belongs to a person: it is shown and left alone. A drain without a
reason marks a worker that has just joined (steps/admission.py), since Slurm requires a reason from people.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from gpuaas_sdk.host_steps.host import Answer, Host

from gpuaas_slurm import validate
from gpuaas_slurm.errors import FAILURES
from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import daemons, jobs, nodes, parse

OURS = "gpuaas:"
MOST_JOBS = 50  # of the jobs on a node that are listed one by one
LEAVING = ("drained", "draining")
# After a crash slurmctld is back within seconds (Restart=), and a busy one closes a connection now and then.
PERSIST = """
persist() { local try; for try in 1 2 3 4 5 6; do "$@" && return; sleep 1.5; done; return 1; }
"""
# A scheduler that does not answer is an error, never a node without jobs.
BEGIN = f"""
fence || exit 1
silent() {{ refuse step_failed 'The scheduler does not answer.'; }}
{PERSIST}
persist {daemons.CTLD_LISTENS} || silent
"""
LIST_STATES = f"""
nodes=$(persist {nodes.list_states()}) || silent
sed 's/^/@node /' <<<"$nodes"
"""
# Read ahead with other questions: it waits for nothing, and what it could not read is read later.
LIST_STATES_IF_UP = f"""silent() {{ :; }}
persist() {{ "$@"; }}
if {daemons.CTLD_LISTENS}; then {LIST_STATES} fi
"""


def _read_script(node: str) -> str:
    """Return the script that reads a node and the jobs on it, each job with the latest time at which it can end."""
    return f"""
node=$(persist {nodes.show_state_user_and_reason(node)}) || silent
say node "$(head -1 <<<"$node")"
[ -n "$node" ] || exit 0
list_jobs() {{ {jobs.list_on(node)}; }}
jobs=$(persist list_jobs) || silent
[ -z "$jobs" ] || sed 's/^/@job /' <<<"$jobs"
exit 0
"""


def _drain_script(node: str, reason: str, stays: str) -> str:
    """Return the script that drains a node unless its state matches `stays`. One script reads the state and drains the
    node, so that an empty node is drained at once."""
    return f"""
state=$(persist {nodes.show_state(node)}) || silent
case ${{state%%[^a-z]*}} in
  {stays}) ;;
  *) persist {nodes.drain(node, f"'{reason}'")} || exit 1 ;;
esac
"""


def _undrain_script(node: str, whose: str) -> str:
    """Return the script that undrains a node if its reason still begins with `whose`, because a person may have drained
    it meanwhile. A node without jobs is set to `idle`: after `undrain` it would count as not responding until the next
    round of pings, and a new job could wait for half a minute."""
    return f"""
fence || exit 1
{PERSIST}
how=undrain
seen=$(persist {nodes.show_states_and_reasons(node)}) || refuse step_failed 'The scheduler does not answer.'
seen=${{seen%%$'\\n'*}}
case ${{seen%%|*}} in drain|drain$) how=idle ;; esac
case ${{seen#*|}} in {whose}*|none) persist {nodes.set_state(node, "$how")} || exit 1 ;; esac
exit 0
"""


def _requeue_script(ids: str) -> str:
    return f"""
fence || exit 1
for job in {ids}; do
  if why=$({jobs.requeue("$job")} 2>&1); then say back $job; else say stays "$job|$why"; fi
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
    ends_at: str | None  # at the latest; None for a job without a time limit

    @property
    def ending(self) -> bool:
        return self.state == "COMPLETING"


@dataclass(frozen=True)
class NodeStatus:
    """A node as Slurm shows it, with the jobs on it. `known` is False when Slurm has no such node."""

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
    def drained_by_person(self) -> bool:
        return self.state in LEAVING and not self.ours

    @property
    def is_drained(self) -> bool:
        """Return True if no job runs on the node and none will start. Slurm shows `drain` only for a node without
        jobs."""
        return self.state == "drained" and not self.jobs

    @property
    def free_at(self) -> str | None:
        """Return the time by which all jobs on the worker must have ended, or None if any of them has no time limit or
        there are no jobs."""
        ends = [job.ends_at for job in self.jobs]
        return max((end for end in ends if end), default=None) if all(ends) else None

    @property
    def forecast(self) -> dict[str, Any]:
        jobs = [asdict(job) for job in self.jobs[:MOST_JOBS]]
        for job in jobs:
            del job["left"]  # changes every second; `ends_at` has the same information
        return {"free_at": self.free_at, "jobs": jobs, "jobs_total": len(self.jobs)}

    @property
    def waits_for(self) -> str:
        if not self.jobs:
            return f"the node to become drained (it is {self.state})"
        first, more = self.jobs[0], len(self.jobs) - 1
        left = "with no time limit" if first.left == "UNLIMITED" else f"at most {first.left} left"
        others = f" and {more} other job{'s' if more > 1 else ''}" if more else ""
        return f"job {first.id} of {first.user} ({left}){others}"


def read(answer: Answer) -> NodeStatus:
    state, by, reason = [*answer.last("node").split("|", 2), "", "", ""][:3]
    on_node = tuple(_job(line) for line in answer.lines.get("job", []) if line.count("|") >= 5)
    shown = "" if reason.strip() in ("", "none") else reason.strip()
    return NodeStatus(bool(state.strip()), parse.node_state(state), shown, by.strip(), on_node)


def _job(line: str) -> Job:
    *columns, ends = line.split("|", 5)
    return Job(*columns, ends_at=f"{ends.strip()}Z" if ends.strip()[:1].isdigit() else None)


async def read_node(head: Host, slot: WorkerSlot) -> NodeStatus:
    script = BEGIN + _read_script(validate.word("node", slot.node))
    return read(_checked(await head.script(script, step="look", within=60), head, "look"))


async def read_states(head: Host, slots: Iterable[WorkerSlot]) -> dict[str, str]:
    """Return the state of each worker by member id, as values of members' runtime_state."""
    answer = await head.script(f"{BEGIN}{LIST_STATES}exit 0\n", step="look", within=60)
    return states_of(_checked(answer, head, "look"), slots)


def states_of(answer: Answer, slots: Iterable[WorkerSlot]) -> dict[str, str]:
    known = dict(line.split("|", 1) for line in answer.lines.get("node", []) if "|" in line)
    return {slot.member_id: parse.node_state(known.get(slot.node, "")) for slot in slots}


async def drain(head: Host, slot: WorkerSlot, why: str, *, again: bool = False) -> NodeStatus:
    """Drain a node that takes jobs, and return its status. With `again` a drained node gets the new reason too. The
    reason names the operation, to distinguish this drain from a person's."""
    operation = validate.word("id", head.claim.operation_id)
    text = validate.plain(why)[:80] or "asked for by the platform"
    stays = "''" if again else "'' | drain | drng"
    node = validate.word("node", slot.node)
    script = BEGIN + _drain_script(node, f"{OURS}{operation}: {text}", stays) + _read_script(node)
    return read(_checked(await head.script(script, step="drain", within=60), head, "drain"))


async def undrain(head: Host, slot: WorkerSlot, operation_id: str = "") -> None:
    """Undrain a node that the platform drained; with `operation_id` only if that operation drained it. A person's drain
    stays."""
    whose = f"{OURS}{validate.word('id', operation_id)}:" if operation_id else OURS
    script = _undrain_script(validate.word("node", slot.node), whose)
    _checked(await head.script(script, step="undrain", within=60), head, "undrain")


async def requeue(head: Host, waiting: Iterable[Job]) -> tuple[list[str], dict[str, str]]:
    """Requeue jobs. Returns the requeued jobs, and for each other job why Slurm did not requeue it: Slurm requeues only
    batch jobs that allow it."""
    ids = " ".join(str(validate.whole("job", int(job.id), 1, 2**32)) for job in waiting)
    answer = _checked(await head.script(_requeue_script(ids), step="requeue", within=60), head, "requeue")
    stays = (line.partition("|") for line in answer.lines.get("stays", []))
    return answer.lines.get("back", []), {job: why for job, _, why in stays}


def _checked(answer: Answer, head: Host, step: str) -> Answer:
    if answer.exit != 0:
        raise FAILURES.explain(
            answer, host=head.name, step=step, title="Reading the scheduler's state", code="step_failed"
        )
    return answer
