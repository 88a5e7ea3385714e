"""Commands for people, shown in sentences, ways out and the access bundle. The app runs them only to prove that they
work."""

HEALTH = ("scontrol ping", "sinfo -N", "sinfo -R")  # how to see the state of the cluster
COMMANDS = (
    *HEALTH,
    "sinfo",
    "squeue",
    "sacct -X -n -P -o JobID,JobName,State",
    "sacctmgr -nP show assoc format=cluster,account,user",
)


def undrain(node: str, state: str = "undrain") -> str:
    return f"scontrol update nodename={node} state={state}"


def delete_node(node: str) -> str:
    return f"scontrol delete nodename={node}"


def delete_association(account: str, user: str = "") -> str:
    what = f"user {user} account={account}" if user else f"account {account}"
    return f"sacctmgr delete {what}"
