"""A node whose host is gone, as the controller's host sees it: its jobs go back into the queue, then it is deleted.

Down means for Slurm that nothing runs there any more: batch jobs are requeued, others end as NODE_FAIL. Whether that is
true of the host, the platform cannot know; whoever says that the host is gone has said so.
"""

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm.plan import WorkerSlot
from gpuaas_slurm.slurm import shell
from gpuaas_slurm.steps.nodes import OURS


def down(slot: WorkerSlot) -> Step:
    jobs = f"timeout 5 squeue -h -w {slot.node} -t R,CG,CF,S -o %A"
    free = f"""
free() {{
  [ -n "$(timeout 5 sinfo -h -n {slot.node} -o %N)" ] || return 0
  {shell.node_state(slot)} | grep -Eq '^(down|drain)' && [ -z "$({jobs})" ]
}}
"""
    return Step(
        name="node_down",
        title="Putting the jobs of the lost worker back into the queue",
        phase="fencing",
        probe=f'[ -f "$REPORT/node_down" ] && port_open 6817 && {{ {free} free; }}',
        act=f"""{free}
if [ -n "$(timeout 5 sinfo -h -n {slot.node} -o %N)" ]; then
  timeout 5 scontrol update nodename={slot.node} state=down reason="{OURS}$OPERATION: its host is gone"
fi
wait_until 20 free || {{ {jobs} | xargs -r timeout 10 scancel --signal=KILL || true; }}
wait_until 20 free
date >"$REPORT/node_down"
""",
        within=15,
        unit="slurmctld",
    )
