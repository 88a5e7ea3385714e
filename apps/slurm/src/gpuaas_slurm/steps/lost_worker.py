"""Steps on the controller's host for a node whose host is gone: requeue its jobs, then delete the node.

When a node is set down, Slurm assumes that nothing runs there: batch jobs are requeued, others end as NODE_FAIL. The
platform cannot verify that on the lost host; the person who declares the host gone is responsible for it.
"""

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import daemons, jobs, nodes
from gpuaas_slurm.slurm.node_control import OURS


def down(slot: WorkerSlot) -> Step:
    held = jobs.list_held_by(slot.node)
    free = f"""
free() {{
  {nodes.exists(slot.node)} || return 0
  {nodes.show_state(slot.node)} | grep -Eq '^(down|drain)' && [ -z "$({held})" ]
}}
"""
    return Step(
        name="node_down",
        title="Putting the jobs of the lost worker back into the queue",
        phase="fencing",
        probe=f'[ -f "$REPORT/node_down" ] && {daemons.CTLD_LISTENS} && {{ {free} free; }}',
        act=f"""{free}
if {nodes.exists(slot.node)}; then
  {nodes.set_down(slot.node, f'"{OURS}$OPERATION: its host is gone"')}
fi
wait_until 20 free || {{ {held} | xargs -r timeout 10 scancel --signal=KILL || true; }}
wait_until 20 free
date >"$REPORT/node_down"
""",
        within=15,
        unit="slurmctld",
    )
