"""Shell text that checks whether the daemons respond, makes slurmctld read its settings, and stops the database."""

AS_SLURM = "setpriv --reuid slurm --regid slurm --clear-groups"  # runuser would open a session for it
CTLD_LISTENS = "port_open 6817"
DBD_LISTENS = "port_open 6819"
DBD_ANSWERS = f"active slurmdbd && {DBD_LISTENS}"

# A mariadbd that receives SIGTERM while it starts can block for ever, and its unit gives it 15 minutes to stop. So a
# start under way is waited for first. A mariadbd that blocks all the same is killed: InnoDB recovers at the next start.
STOP_DATABASE = """
stop_database() {
  case $(systemctl is-active mariadb.service) in
    activating) timeout 40 systemctl start mariadb.service || true ;;
  esac
  timeout 40 systemctl stop mariadb.service || {
    systemctl kill --signal=KILL mariadb.service || true
    systemctl stop mariadb.service
    systemctl reset-failed mariadb.service 2>/dev/null || true
  }
}
"""


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
