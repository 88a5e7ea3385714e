"""Shell text that reads and loads the accounting database: cluster, account, user."""

from gpuaas_slurm.plan import Plan
from gpuaas_slurm.slurm import daemons

CLIENT = "sacctmgr"  # the program, as preflight looks for it
LIMITS = ("grpjobs", "grpsubmit", "grptres", "maxjobs", "maxsubmit", "maxwall")


def is_known(plan: Plan) -> str:
    """Return a shell test that succeeds if slurmctld has the user and account, with a real uid (4294967294 means that
    there is no such Unix user)."""
    return (
        f"{daemons.CTLD_LISTENS} && "
        f"timeout 5 scontrol show assoc_mgr users={plan.user} accounts={plan.account} flags=assoc"
        f' | grep -q "Account={plan.account} UserName={plan.user}($(id -u {plan.user})) "'
    )


def is_stored(plan: Plan) -> str:
    """Return a shell test that succeeds if slurmdbd has the association, whether or not slurmctld has read it."""
    return (
        f"{daemons.DBD_ANSWERS} && "
        f"timeout 10 sacctmgr -nP show assoc where cluster={plan.cluster} account={plan.account} user={plan.user}"
        " format=user | grep -q ."
    )


def load(path: str) -> str:
    """Return the shell command that loads cluster, account and user from a file; existing entries stay as they are."""
    return f"timeout 30 sacctmgr -i load {path}"


def list_associations(cluster: str) -> str:
    """Return the shell command that prints `account|user|limits…` for one cluster."""
    columns = ",".join(("account", "user", *LIMITS))
    return f'timeout 10 sacctmgr -nP show assoc where cluster="{cluster}" format="{columns}" 2>/dev/null'
