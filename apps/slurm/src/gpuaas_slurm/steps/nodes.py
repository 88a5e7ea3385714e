"""What is done to one worker from the controller's host: try it, drain it, give it back, take it out of Slurm.

A drain of ours says so in its reason (`gpuaas:OPERATION: text`). A drain of anybody else is shown and left alone.
"""

from dataclasses import dataclass

from gpuaas_slurm import validate
from gpuaas_slurm.errors import explain
from gpuaas_slurm.hosts import Answer, Host
from gpuaas_slurm.plan import Plan, Seat
from gpuaas_slurm.slurm import parse, shell
from gpuaas_slurm.steps.base import Step

OURS = "gpuaas:"
JOURNAL_LINES = 1000  # that a host keeps of its own journal, whatever comes and goes

# One answer: what Slurm says of the node, and whose jobs hold it, each with the time it may still take.
LOOK = """
fence || exit 1
port_open 6817 || refuse step_failed 'The scheduler does not answer.'
say node "$(timeout 5 sinfo -h -n {node} -o '%t|%u|%E' | head -1)"
timeout 5 squeue -h -w {node} -o '%A|%u|%L|%T' | sed 's/^/@job /'
exit 0
"""
DRAIN = """
fence || exit 1
timeout 5 scontrol update nodename={node} state=drain reason='{reason}' || exit 1
exit 0
"""
UNDRAIN = """
fence || exit 1
timeout 5 scontrol update nodename={node} state=undrain || exit 1
exit 0
"""


@dataclass(frozen=True)
class Job:
    id: str
    user: str
    left: str
    state: str


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
        return self.reason.startswith(OURS)

    @property
    def is_drained(self) -> bool:
        """Nothing runs on it and nothing will. Slurm says `drain` only of a node without jobs."""
        return self.state == "drained" and not self.jobs

    @property
    def waits_for(self) -> str:
        if not self.jobs:
            return f"the node to become drained (it is {self.state})"
        first, more = self.jobs[0], len(self.jobs) - 1
        left = "with no time limit" if first.left == "UNLIMITED" else f"at most {first.left} left"
        others = f" and {more} other job{'s' if more > 1 else ''}" if more else ""
        return f"job {first.id} of {first.user} ({left}){others}"


def read(answer: Answer) -> Standing:
    state, by, reason = [*answer.one("node").split("|", 2), "", "", ""][:3]
    jobs = tuple(Job(*line.split("|", 3)) for line in answer.said.get("job", []) if line.count("|") >= 3)
    said = "" if reason.strip() in ("", "none") else reason.strip()
    return Standing(bool(state.strip()), parse.node_state(state), said, by.strip(), jobs)


async def look(head: Host, seat: Seat) -> Answer:
    return await head.script(LOOK.format(node=validate.word("node", seat.node)), step="look", within=15)


async def standing(head: Host, seat: Seat) -> Standing:
    answer = await look(head, seat)
    if answer.exit != 0:
        raise explain(answer, host=head.name, step="look", title="Asking the scheduler", code="step_failed")
    return read(answer)


async def drain(head: Host, seat: Seat, why: str) -> Answer:
    """The reason names the operation, so that nobody takes it for a person's."""
    operation = validate.word("id", head.claim.operation_id)
    text = validate.plain(why)[:80] or "asked for by the platform"
    words = DRAIN.format(node=validate.word("node", seat.node), reason=f"{OURS}{operation}: {text}")
    return await head.script(words, step="drain", within=15)


async def undrain(head: Host, seat: Seat) -> Answer:
    return await head.script(UNDRAIN.format(node=validate.word("node", seat.node)), step="undrain", within=15)


def accept(plan: Plan, seat: Seat) -> Step:
    """A worker is told to be ready when a job of the ordinary user has run on exactly it; one that is full of other
    people's jobs already has shown the same."""
    options = f"{shell.job_options(plan)} -w {seat.node} -J gpuaas-proof"
    job = shell.as_user(plan, f"timeout 20 srun {options} hostname")
    return Step(
        name="accept",
        title="Running a job on the worker",
        phase="proving",
        probe='[ -s "$REPORT/accept" ]',
        act=f"""
said=$({job}) || {{
  {shell.node_state(seat)} | grep -Eqx '(mix|alloc)' || exit 1
  said=busy
}}
printf '%s|%s\\n' "$(now_ms)" "$said" >"$REPORT/accept"
""",
        unit="slurmctld",
        code="job_proof_failed",
        undo="forget",
    )


def forget(seat: Seat) -> Step:
    """What the controller's host knows of a worker's operations goes with the worker; last, since every command of its
    operation notes its claim again."""
    member = validate.word("id", seat.member_id)
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
old_marks_go
""",
    )


def delete(seat: Seat) -> Step:
    """Slurm refuses to delete a node with jobs: an honest gate. Its slurmd is stopped before, or it would come back."""
    gone = f'[ -z "$(timeout 5 sinfo -h -n {seat.node} -o %N)" ]'
    return Step(
        name="delete_node",
        title="Taking the worker out of Slurm",
        phase="removing",
        probe=f"port_open 6817 && {gone}",
        act=f"timeout 10 scontrol delete nodename={seat.node} || {gone}",
        unit="slurmctld",
        code="teardown_incomplete",
    )
