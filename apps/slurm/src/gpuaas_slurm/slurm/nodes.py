"""Shell text that reads and changes nodes. `node` is a validated node name, or a shell variable such as `$n`.

A Slurm client that finds no daemon sleeps for whole seconds: check the port first (daemons.py).
"""

from gpuaas_slurm.slurm import daemons

DRAINED_BY_SLURM = "gres/gpu|Low "  # how the reasons begin with which Slurm drains a node that registers with less
# Whatever its owner did to it since. `$` is Slurm's mark of a node in a maintenance reservation.
REGISTERED = "(idle[*]?|mix[*]?|alloc[*]?|comp|drain|drng|maint|resv)[$]?"


def _show(node: str, columns: str) -> str:
    return f"timeout 5 sinfo -h -n {node} -o {columns}"


def show_name(node: str) -> str:
    """Return the shell command that prints the node's name, or nothing if Slurm has no such node."""
    return _show(node, "%N")


def show_state(node: str) -> str:
    return _show(node, "%t")


def show_features(node: str) -> str:
    return _show(node, "%f")


def show_reason(node: str) -> str:
    """Return the shell command that prints the drain reason, or `none` if the node is not drained."""
    return f"{_show(node, '%E')} | head -1"


def show_state_and_reason(node: str) -> str:
    """Return the shell command that prints the node's state and drain reason in one line: `drain|none`."""
    return f"{show_states_and_reasons(node)} | head -1"


def show_states_and_reasons(node: str) -> str:
    return _show(node, "'%t|%E'")


def describe(node: str) -> str:
    """Return the shell command that prints the node's state and drain reason for people."""
    return _show(node, "'%t %E'")


def show_state_user_and_reason(node: str) -> str:
    """Return the shell command that prints state, the user who drained the node, and reason: `drain|root|bad fan`."""
    return _show(node, "'%t|%u|%E'")


def show_start_time(node: str) -> str:
    """Return the shell command that prints when the node's slurmd last registered."""
    return f"timeout 5 scontrol show node {node} | grep -o 'SlurmdStartTime=[^ ]*'"


def exists(node: str) -> str:
    return f'[ -n "$({show_name(node)})" ]'


def is_missing(node: str) -> str:
    return f'[ -z "$({show_name(node)})" ]'


def was_drained_by_slurm(node: str) -> str:
    return f"{show_reason(node)} | grep -Eq '^({DRAINED_BY_SLURM})'"


def is_registered(node: str) -> str:
    return f"{show_state(node)} | grep -Eqx '{REGISTERED}'"


def is_ready(node: str, *, beside_scheduler: bool) -> str:
    """Return a shell test that succeeds if slurmd runs and Slurm shows the node as available. A node drained by a
    person counts as ready; a node that Slurm drained for a registration with too few resources does not."""
    port = f"{daemons.CTLD_LISTENS} && " if beside_scheduler else ""
    shown = f"{describe(node)} | grep -Ev ' ({DRAINED_BY_SLURM})'"
    return f"active slurmd && {port}{shown} | grep -Eq '^(idle|mix|alloc|comp|drain|drng|maint|resv)[$]? '"


def list_states() -> str:
    """Return the shell command that prints `name|state` of every node, including hidden ones."""
    return "timeout 5 sinfo -a -h -N -o '%N|%t'"


def list_short_states() -> str:
    return "timeout 5 sinfo -h -N -o %t"


def list_names() -> str:
    return "timeout 5 sinfo -h -o %N"


def list_names_and_states() -> str:
    return "sinfo -h -N -o '%N=%t'"


def list_reasons() -> str:
    return "timeout 5 sinfo -h -N -o '%N|%E'"


def list_features_and_reasons() -> str:
    return "timeout 5 sinfo -h -N -o '%N|%f|%E'"


def list_details() -> str:
    """Return the shell command that prints the node details for parse.read_node."""
    return "timeout 5 sinfo -a -h -N -o '%N|%t|%v|%G|%u|%H|%E' | sort -u"


def set_state(node: str, state: str) -> str:
    return f"timeout 5 scontrol update nodename={node} state={state}"


def drain(node: str, reason: str) -> str:
    """Return the shell command that drains a node. `reason` must be quoted by the caller."""
    return f"{set_state(node, 'drain')} reason={reason}"


def set_down(node: str, reason: str) -> str:
    return f"{set_state(node, 'down')} reason={reason}"


def resume(node: str) -> str:
    return f"scontrol update nodename={node} state=resume"


def set_features(node: str, features: str) -> str:
    return f"timeout 5 scontrol update nodename={node} features={features}"


def delete(node: str) -> str:
    """Return the shell command that deletes a node. Slurm refuses to delete a node with jobs."""
    return f"timeout 10 scontrol delete nodename={node}"


def reservation_exists(name: str) -> str:
    return f"timeout 5 scontrol show reservation {name} >/dev/null 2>&1"


def create_reservation(name: str, *, node: str, user: str, minutes: int) -> str:
    """Return the shell command that reserves the node for jobs of `user`."""
    return f"""timeout 5 scontrol create reservation reservationname={name} flags=maint,ignore_jobs starttime=now \\
  duration={minutes} nodes={node} users={user}"""


def delete_reservation(name: str) -> str:
    return f"timeout 5 scontrol delete reservationname={name}"
