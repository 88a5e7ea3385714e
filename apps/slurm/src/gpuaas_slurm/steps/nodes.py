"""Steps for one worker, on the controller's host or its own: restart it, delete it from Slurm, remove its notes."""

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm import validate
from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import daemons, nodes

JOURNAL_LINES = 1000  # that a host keeps of its own journal


def forget(slot: WorkerSlot) -> Step:
    """Return the step that removes the notes about the worker's operations from the controller's host. It must run
    last, because every command of the operation writes its claim again."""
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
    """Return the step that deletes the node from Slurm. Slurm refuses while the node has jobs. The node's slurmd must
    be stopped first, otherwise the node would rejoin."""
    missing = nodes.is_missing(slot.node)
    return Step(
        name="delete_node",
        title="Deleting the worker from Slurm",
        phase="removing",
        probe=f"{daemons.CTLD_LISTENS} && {missing}",
        act=f"""
rm -f "$OWN/accepted.{slot.node}"
{nodes.delete_reservation(reservation(slot))} 2>/dev/null || true
{nodes.delete(slot.node)} || {missing}
""",
        unit="slurmctld",
        code="teardown_incomplete",
    )


def restart(head_is_here: bool, slot: WorkerSlot) -> Step:
    """Return the step that restarts slurmd and waits until it has registered. A person's drain stays. A node that Slurm
    drained for a wrong registration is resumed, because Slurm leaves it drained after the cause is fixed."""
    port = f"{daemons.CTLD_LISTENS} && " if head_is_here else ""
    there = f"active slurmd && {port}{nodes.is_registered(slot.node)}"
    mark = '"$REPORT/again_worker"'
    return Step(
        name="again_worker",
        title="Restarting the worker and waiting until it has registered",
        phase="starting",
        probe=f"[ -f {mark} ] && {there}",
        act=f"""
began() {{ {nodes.show_start_time(slot.node)}; }}
before=$(began || true)
restart slurmd
heard() {{ [ "$(began || true)" != "$before" ]; }}
wait_until 10 heard || {nodes.show_reason(slot.node)}
if {nodes.was_drained_by_slurm(slot.node)}; then {nodes.resume(slot.node)}; fi
date >{mark}
""",
        within=15,
        unit="slurmd",
        undo="stop_services",
    )


def reservation(slot: WorkerSlot) -> str:
    """Return the name of the reservation that keeps other jobs from a worker while its acceptance job runs."""
    return f"gpuaas_{slot.node.replace('-', '_')}"
