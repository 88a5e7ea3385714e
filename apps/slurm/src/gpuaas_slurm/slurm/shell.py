"""Shell words for Slurm's commands, used inside the scripts of steps/. Every value comes from a validated Plan.

Gates look at the port first: a Slurm client that finds no daemon sleeps for whole seconds, a closed port costs nothing.
"""

from gpuaas_slurm.plan import Plan, WorkerSlot

AS_SLURM = "setpriv --reuid slurm --regid slurm --clear-groups"  # runuser would open a session for it
LESS = "gres/gpu|Low "
DBD_ANSWERS = "active slurmdbd && port_open 6819"
CTLD_ANSWERS = "active slurmctld && port_open 6817 && timeout 5 scontrol ping | grep -q 'is UP'"

# When Slurm has taken up its settings, what it then says of its partitions is kept on the controller's host: as long as
# both are so, a look at new settings that are the old ones has nothing to do. What workers bring along is left out.
TAKEN_UP = '"$OWN/taken_up"'
PARTITIONS = r"""
as_read() { timeout 5 scontrol -o show partition | sed -E 's/ (Nodes|TotalCPUs|TotalNodes|TRES)=[^ ]*//g' | sort; }
"""


def association_known(plan: Plan) -> str:
    """slurmctld itself knows user and account, with a real uid (4294967294 means: no such Unix user)."""
    return (
        f"port_open 6817 && timeout 5 scontrol show assoc_mgr users={plan.user} accounts={plan.account} flags=assoc"
        f' | grep -q "Account={plan.account} UserName={plan.user}($(id -u {plan.user})) "'
    )


def association_stored(plan: Plan) -> str:
    """slurmdbd holds the association (whether or not slurmctld has heard of it)."""
    return (
        "active slurmdbd && port_open 6819 && "
        f"timeout 10 sacctmgr -nP show assoc where cluster={plan.cluster} account={plan.account} user={plan.user}"
        " format=user | grep -q ."
    )


def load_accounts(path: str) -> str:
    """One call for cluster, account and user; what is there already is left alone."""
    return f"timeout 30 sacctmgr -i load {path}"


def node_state(slot: WorkerSlot) -> str:
    return f"timeout 5 sinfo -h -n {slot.node} -o %t"


def node_reason(slot: WorkerSlot) -> str:
    """`none` when nobody drained it."""
    return f"timeout 5 sinfo -h -n {slot.node} -o %E | head -1"


def node_standing(slot: WorkerSlot) -> str:
    """Both in one question: `drain|none`."""
    return f"timeout 5 sinfo -h -n {slot.node} -o '%t|%E' | head -1"


def node_ready(slot: WorkerSlot, *, beside_scheduler: bool) -> str:
    """Slurm counts on it. Who drained it stays the owner of that drain; only what Slurm itself drained, because less
    came than was announced (its reasons begin so), is not ready."""
    port = "port_open 6817 && " if beside_scheduler else ""
    asked = f"timeout 5 sinfo -h -n {slot.node} -o '%t %E' | grep -Ev ' ({LESS})'"
    return f"active slurmd && {port}{asked} | grep -Eq '^(idle|mix|alloc|comp|drain|drng|maint|resv)[$]? '"


def as_user(plan: Plan, command: str) -> str:
    """Run as the ordinary user of the cluster, from a directory it may enter, without a terminal."""
    return f"{{ cd /tmp && runuser -u {plan.user} -- {command} </dev/null; }}"


def job_options(plan: Plan, hosts: int = 1) -> str:
    return f"-N{hosts} -n{hosts} -A {plan.account} -p {plan.partition} --time=1"
