"""Shell text that reads, requeues and cancels jobs, and that runs the app's own proofs."""

from gpuaas_slurm.plan import Plan


def list_ids() -> str:
    return "timeout 5 squeue -h -o %A"


def list_running() -> str:
    """Return the shell command that lists running, completing and starting jobs."""
    return "timeout 5 squeue -h -t R,CG,CF -o %A"


def list_held_by(node: str) -> str:
    """Return the shell command that lists running, completing, starting and suspended jobs on one node."""
    return f"timeout 5 squeue -h -w {node} -t R,CG,CF,S -o %A"


def list_on(node: str) -> str:
    """Return the shell command that prints `id|user|account|left|state|end` (UTC) per job on a node, for
    node_control."""
    return f"TZ=UTC timeout 5 squeue -h -w {node} -o '%A|%u|%a|%L|%T|%e'"


def name_some_on(node: str) -> str:
    """Return the shell command that prints at most three jobs of a node for people: `7 of anna,8 of ben`."""
    return f"timeout 5 squeue -h -w {node} -o '%A of %u' | awk 'NR<4' | paste -sd, -"


def name_some_in(partition: str) -> str:
    return f"timeout 5 squeue -h -p {partition} -o '%A of %u' | awk 'NR<4' | paste -sd, -"


def show(job: str) -> str:
    return f"squeue -h -j {job}"


def requeue(job: str) -> str:
    return f"timeout 5 scontrol requeue {job}"


def show_record_state(job: str) -> str:
    """Return the shell command that prints the state of a job's accounting record."""
    return f"timeout 5 sacct -X -n -P -j {job} -o State"


def show_record(job: str) -> str:
    return f"timeout 5 sacct -X -n -P -j {job} -o JobID,State,Account"


def as_user(plan: Plan, command: str) -> str:
    """Wrap a shell command to run as the cluster's ordinary user, in a directory it may enter, without a terminal."""
    return f"{{ cd /tmp && runuser -u {plan.user} -- {command} </dev/null; }}"


def options(plan: Plan, hosts: int = 1) -> str:
    return f"-N{hosts} -n{hosts} -A {plan.account} -p {plan.partition} --time=1"
