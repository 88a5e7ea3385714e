"""Shell text that reads, requeues and cancels jobs, and that runs the app's own proofs."""

from gpuaas_slurm.plan import Plan


def list_ids() -> str:
    return "timeout 5 squeue -h -o %A"


def list_running() -> str:
    """Running, completing and starting ones."""
    return "timeout 5 squeue -h -t R,CG,CF -o %A"


def list_held_by(node: str) -> str:
    """Like list_running on one node, and suspended ones."""
    return f"timeout 5 squeue -h -w {node} -t R,CG,CF,S -o %A"


def list_on(node: str) -> str:
    """`id|user|account|left|state|end` in UTC: what node_control reads."""
    return f"TZ=UTC timeout 5 squeue -h -w {node} -o '%A|%u|%a|%L|%T|%e'"


def name_some_on(node: str) -> str:
    """At most three, for people: `7 of anna,8 of ben`."""
    return f"timeout 5 squeue -h -w {node} -o '%A of %u' | awk 'NR<4' | paste -sd, -"


def name_some_in(partition: str) -> str:
    return f"timeout 5 squeue -h -p {partition} -o '%A of %u' | awk 'NR<4' | paste -sd, -"


def show(job: str) -> str:
    return f"squeue -h -j {job}"


def requeue(job: str) -> str:
    return f"timeout 5 scontrol requeue {job}"


def show_record_state(job: str) -> str:
    """Of its accounting record."""
    return f"timeout 5 sacct -X -n -P -j {job} -o State"


def show_record(job: str) -> str:
    return f"timeout 5 sacct -X -n -P -j {job} -o JobID,State,Account"


def as_user(plan: Plan, command: str) -> str:
    """Run as the ordinary user of the cluster, from a directory it may enter, without a terminal."""
    return f"{{ cd /tmp && runuser -u {plan.user} -- {command} </dev/null; }}"


def options(plan: Plan, hosts: int = 1) -> str:
    return f"-N{hosts} -n{hosts} -A {plan.account} -p {plan.partition} --time=1"
