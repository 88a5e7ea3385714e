"""Admission of a worker to a running cluster: the worker takes jobs only after an acceptance job has run on it.

The worker joins drained (`State=DRAIN` in its own registration), so that no job can start before. The drain gets a
reason that names the operation. While the acceptance job runs, the drain is lifted and a reservation keeps other jobs
away; then the reservation is deleted. `take_off` undoes this when the operation fails or is canceled.
"""

from gpuaas_sdk.host_steps.errors import Diagnosis, diagnosis
from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm.errors import FAILURES
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.files import File
from gpuaas_slurm.slurm import daemons, jobs, nodes
from gpuaas_slurm.slurm.node_control import OURS
from gpuaas_slurm.steps.nodes import reservation

OPTIONS, DOOR = "/etc/gpuaas-slurm/slurmd.env", "/etc/gpuaas-slurm/admission.env"
LONGEST_MINUTES = 60  # of the reservation: it ends by itself if the operation is never resumed


def opened(slot: WorkerSlot) -> str:
    """Return the path of the file that marks the worker as admitted, on the worker's host. The file is named after the
    node, because the host may have belonged to another member before."""
    return f'"$OWN/open_door.{slot.node}"'


def accepted(slot: WorkerSlot) -> str:
    """Return the path of the file that marks the worker as accepted, on the controller's host. Because of this file, a
    retry does not run the acceptance job again."""
    return f'"$OWN/accepted.{slot.node}"'


def close_door(slot: WorkerSlot, options: File) -> Step:
    """Return the step that writes options with which slurmd registers the node as drained. The options stay until the
    worker is accepted, also over a reboot."""
    closed = options.text.replace("\"'\n", " State=DRAIN\"'\n")
    if closed == options.text:
        raise ValueError("the options of slurmd are not written as this module knows them")
    return Step(
        name="close_door",
        title="Closing the worker to jobs until it is accepted",
        phase="preparing",
        probe=f"grep -qs -- '-N {slot.node} ' {DOOR} || [ -f {opened(slot)} ]",
        act=f"cat >{DOOR}.new\nmv {DOOR}.new {DOOR}",
        data=closed.encode(),
        undo="remove_files",
    )


def join(slot: WorkerSlot) -> Step:
    there = nodes.is_registered(slot.node)
    return Step(
        name="join",
        title="Starting the worker, closed to jobs",
        phase="starting",
        probe=f"active slurmd && {there}",
        act=f"""
restart slurmd
there() {{ {there}; }}
wait_until 10 there || {nodes.describe(slot.node)}
""",
        within=15,
        unit="slurmd",
        undo="stop_services",
    )


def admit(plan: Plan, slot: WorkerSlot) -> Step:
    """Return the step that reserves the worker for its acceptance job, and sets a drain reason that names the
    operation. A person's drain stays."""
    name = reservation(slot)
    held = nodes.reservation_exists(name)
    return Step(
        name="admit",
        title="Reserving the worker for its acceptance job",
        phase="proving",
        probe=f"[ -s {accepted(slot)} ] || {held}",
        act=f"""
case $({nodes.show_state_and_reason(slot.node)}) in
  drain*\\|none) {nodes.drain(slot.node, f'"{OURS}$OPERATION: admission"')} ;;
esac
{held} || {nodes.create_reservation(name, node=slot.node, user=plan.user, minutes=LONGEST_MINUTES)}
""",
        unit="slurmctld",
        undo="stop_services",
    )


def accept(plan: Plan, slot: WorkerSlot, gpus: int) -> Step:
    """Return the step that runs a job of the ordinary user on exactly this worker, with all of its GPUs. If the job
    fails, the node is drained again. A person's drain makes the step fail.

    Uses `state=idle`, not `undrain`: after `undrain` the node counts as not responding until the next round of pings,
    and a job that arrives meanwhile waits for seconds.
    """
    options = f"{jobs.options(plan)} -w {slot.node} --reservation={reservation(slot)} -J gpuaas-proof"
    say = "hostname" + ("; printenv CUDA_VISIBLE_DEVICES" if gpus else "")
    job = jobs.as_user(plan, f"timeout 20 srun {options} {f'--gres=gpu:{gpus} ' if gpus else ''}sh -c '{say}'")
    return Step(
        name="accept",
        title="Running a job on the worker" + (f" with its {gpus} GPU{'s' if gpus > 1 else ''}" if gpus else ""),
        phase="proving",
        probe=f"[ -s {accepted(slot)} ]",
        act=f"""
drained() {{ {nodes.show_state(slot.node)} | grep -Eq '^dr'; }}
stands=$({nodes.show_state_and_reason(slot.node)})
case $stands in
  dr*\\|none|dr*\\|{OURS}*) {nodes.set_state(slot.node, "idle")} ;;
  dr*) say fail "drained_by_person|${{stands#*|}}"; exit 1 ;;
esac
why="{OURS}$OPERATION: not accepted"
close() {{ drained || {nodes.drain(slot.node, '"$why"')}; }}
output=$({job}) || {{ close; exit 1; }}
mapfile -t lines <<<"$output"
IFS=, read -r -a seen <<<"${{lines[1]-}}"
saw=${{#seen[@]}}
[ "$saw" = {gpus} ] || {{ close; echo "the job saw $saw of {gpus} GPUs: $output"; exit 1; }}
{nodes.delete_reservation(reservation(slot))}
printf '%s|%s\\n' "$(now_ms)" "$(echo $output)" >{accepted(slot)}
""",
        unit="slurmctld",
        code="job_proof_failed",
        undo="forget",
    )


def open_door(slot: WorkerSlot) -> Step:
    return Step(
        name="open_door",
        title="Opening the worker to jobs",
        phase="proving",
        probe=f"[ ! -e {DOOR} ] && [ -f {opened(slot)} ]",
        act=f"date >{opened(slot)}\nrm -f {DOOR}",
        undo="forget",
    )


# What a person needs to see of it is looked at before it is stopped.
STOP = """
fence || exit 1
(exec 5>&1; OUT=/dev/null; diagnose)
systemctl stop slurmd.service || true
exit 0
"""


async def outside(head: Host, slot: WorkerSlot) -> bool:
    """Return True if Slurm has the worker's node but the worker was not accepted yet, otherwise False."""
    script = f"""
fence || exit 1
{daemons.CTLD_LISTENS} || refuse step_failed 'The scheduler does not answer.'
[ -s {accepted(slot)} ] || {nodes.is_missing(slot.node)} || say outside yes
exit 0
"""
    answer = await head.script(script, step="look", within=15)
    if answer.exit != 0:
        raise FAILURES.explain(
            answer, host=head.name, step="look", title="Reading the scheduler's state", code="step_failed"
        )
    return answer.last("outside") == "yes"


async def stop(host: Host) -> Diagnosis:
    """Stop the worker's slurmd. Returns the state of its services and the last log lines of slurmd."""
    answer = await host.script(STOP, step="stop_worker", unit="slurmd", within=30)
    return diagnosis(answer)


async def take_off(head: Host, slot: WorkerSlot) -> None:
    """Delete the worker's reservation and its node from Slurm, so that the worker takes no jobs. A node that a person
    drained is not deleted."""
    script = f"""
fence || exit 1
{nodes.delete_reservation(reservation(slot))} 2>/dev/null || true
reason=$({nodes.show_reason(slot.node)})
case $reason in
  none|{OURS}*) {nodes.delete(slot.node)} || exit 1 ;;
esac
exit 0
"""
    answer = await head.script(script, step="take_off", within=30)
    if answer.exit != 0:
        raise FAILURES.explain(
            answer, host=head.name, step="take_off", title="Removing the worker from Slurm", code="step_failed"
        )
