"""Shell text that checks whether the daemons respond and makes slurmctld read its settings."""

AS_SLURM = "setpriv --reuid slurm --regid slurm --clear-groups"  # runuser would open a session for it
CTLD_LISTENS = "port_open 6817"
DBD_LISTENS = "port_open 6819"
DBD_ANSWERS = f"active slurmdbd && {DBD_LISTENS}"


def ping() -> str:
    return "timeout 5 scontrol ping"


CTLD_ANSWERS = f"active slurmctld && {CTLD_LISTENS} && {ping()} | grep -q 'is UP'"


def reconfigure() -> str:
    return "timeout 20 scontrol reconfigure"


def parse_conf(path: str) -> str:
    """Return the shell command that lets a Slurm client parse the file. The command fails on an invalid file, on which
    slurmctld 22.05 would exit."""
    return f"SLURM_CONF={path} timeout 10 scontrol show hostnames x"


def keep_conf_errors() -> str:
    """Return the shell filter that keeps only the errors in the output of parse_conf."""
    return "sed -n 's/^scontrol: error: //p'"
