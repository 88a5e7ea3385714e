"""The steps that start daemons. Each ends with a check on the host: the next daemon starts only when this one
responds."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.other_conf import ACCOUNTS, DATABASE, DATABASE_USER
from gpuaas_slurm.slurm import accounts as accounting_db
from gpuaas_slurm.slurm import daemons, nodes, partitions

OUR_KEY = (
    """[ -s /etc/munge/munge.key ] && [ "$(sha256sum </etc/munge/munge.key)" = "$(cat "$OWN/munge.key.sha256")" ]"""
)

# The key is made here and never leaves; its hash (of 1024 random bits) tells ours from another.
MAKE_KEY = f"""
umask 077
if ! {{ {OUR_KEY}; }} 2>/dev/null; then
  head -c 128 /dev/urandom >/etc/munge/.munge.key.new
  chown munge:munge /etc/munge/.munge.key.new
  chmod 0400 /etc/munge/.munge.key.new
  sync /etc/munge/.munge.key.new
  sha256sum </etc/munge/.munge.key.new >"$OWN/munge.key.sha256"
  mv /etc/munge/.munge.key.new /etc/munge/munge.key
fi
restart munge
"""

TAKE_KEY = f"""
umask 077
if [ -e "$OWN/munge.key.sha256" ] && ! {{ {OUR_KEY}; }}; then say foreign_key found; fi
cat >/etc/munge/.munge.key.new
[ "$(stat -c %s /etc/munge/.munge.key.new)" -ge 32 ] || {{ echo "the key did not arrive whole"; exit 1; }}
chown munge:munge /etc/munge/.munge.key.new
chmod 0400 /etc/munge/.munge.key.new
sync /etc/munge/.munge.key.new
sha256sum </etc/munge/.munge.key.new >"$OWN/munge.key.sha256"
mv /etc/munge/.munge.key.new /etc/munge/munge.key
restart munge
date >"$REPORT/join_key"
"""

# A host that was given up and came back still has its slurmd: with the key it would join under its former name.
NO_OTHER_NODE = """
case $(systemctl is-active slurmd.service) in
  inactive | failed) ;;
  *)
    main=$(systemctl show -P MainPID slurmd.service)
    runs=$(tr '\\0' ' ' 2>/dev/null <"/proc/$main/cmdline") || runs=
    case $runs in *'-N {node} '*) ;; *) systemctl stop slurmd.service ;; esac ;;
esac
"""

START_DATABASE = f"""{daemons.STOP_DATABASE}
case $(systemctl is-active mariadb.service) in deactivating) stop_database ;; esac
if active mariadb; then
  mariadb -e 'SET GLOBAL innodb_buffer_pool_size=536870912; SET GLOBAL innodb_lock_wait_timeout=900'
else
  systemctl reset-failed mariadb.service 2>/dev/null || true
  systemctl start mariadb.service
fi
mariadb <<'SQL'
CREATE DATABASE IF NOT EXISTS {DATABASE};
CREATE USER IF NOT EXISTS '{DATABASE_USER}'@'localhost' IDENTIFIED VIA unix_socket;
GRANT ALL ON {DATABASE}.* TO '{DATABASE_USER}'@'localhost';
SQL
"""


def identity() -> Step:
    return Step(
        name="identity",
        title="Creating the cluster's key and starting munge",
        phase="preparing",
        probe=f"{OUR_KEY} && active munge && munge -n </dev/null | unmunge",
        act=MAKE_KEY,
        unit="munge",
        undo="remove_key",
    )


def join_key(share: Callable[[], Awaitable[bytes]], hash: str = "", slot: WorkerSlot | None = None) -> Step:
    """Return the step that copies the cluster's munge key from the controller's host and starts munge. The key passes
    through this process and is not stored.

    `hash` is the hash of the cluster's key: a host that already has this key is skipped. Without `hash` the key is
    copied in any case. `slot` is the worker that joins a running cluster.
    """
    same = f'[ "$(cat "$OWN/munge.key.sha256")" = "{hash}  -" ]' if hash else '[ -f "$REPORT/join_key" ]'
    return Step(
        name="join_key",
        title="Copying the cluster's key and starting munge",
        phase="preparing",
        probe=f"{OUR_KEY} && {same} && active munge && munge -n </dev/null | unmunge",
        act=(NO_OTHER_NODE.format(node=slot.node) if slot else "") + TAKE_KEY,
        unit="munge",
        data=share,
        undo="remove_key",
    )


def database() -> Step:
    return Step(
        name="database",
        title="Starting the accounting database",
        phase="starting",
        probe=f"active mariadb && {daemons.AS_SLURM} mariadb {DATABASE} -e 'SELECT 1' </dev/null",
        act=START_DATABASE,
        within=20,
        unit="mariadb",
        code="accounting_not_ready",
        undo="drop_accounting",
    )


def accounting() -> Step:
    return Step(
        name="accounting",
        title="Starting the accounting service",
        phase="starting",
        probe=daemons.DBD_ANSWERS,
        act=_restart("slurmdbd", 6819, 20),
        within=20,
        unit="slurmdbd",
        code="accounting_not_ready",
        undo="stop_services",
    )


def accounts(plan: Plan) -> Step:
    """Return the step that loads the accounts. It must run before the scheduler starts: the scheduler then reads the
    accounts at its start and cannot miss them as a later update. A successful load counts as verified, because each
    call of the accounting client takes up to half a second."""
    return Step(
        name="accounts",
        title="Creating the project's account",
        phase="starting",
        probe=f'[ -f "$REPORT/accounts.$EPOCH" ] || {{ {accounting_db.is_stored(plan)}; }}',
        act=f'{accounting_db.load(ACCOUNTS)}\ndate >"$REPORT/accounts.$EPOCH"',
        unit="slurmdbd",
        code="accounting_not_ready",
        undo="drop_accounting",
    )


def scheduler(plan: Plan, *, fresh: bool = False) -> Step:
    """Return the step that starts slurmctld and waits until it responds and has the user and account with a real uid.
    `fresh` means that no worker runs yet, so that the whole cluster starts with the current settings."""
    noted = f"{partitions.DEFINE_AS_READ}as_read >{partitions.TAKEN_UP}\n" if fresh else ""
    return Step(
        name="scheduler",
        title="Starting the scheduler",
        phase="starting",
        probe=f"active slurmctld && {accounting_db.is_known(plan)}",
        act=_restart("slurmctld", 6817, 20) + noted,
        within=20,
        unit="slurmctld",
        undo="stop_services",
    )


def worker(slot: WorkerSlot, *, beside_scheduler: bool) -> Step:
    """Return the step that starts slurmd and waits until the node is ready. A node that Slurm drained for a wrong
    registration is resumed, because Slurm leaves it drained after the cause is gone.

    The probe also checks slurmd's port, since Slurm shows a node as idle for a while after its slurmd has died.
    """
    ready = f"port_open 6818 && {nodes.is_ready(slot.node, beside_scheduler=beside_scheduler)}"
    return Step(
        name="worker",
        title="Starting the worker and waiting until it is idle",
        phase="starting",
        probe=ready,
        act=f"""
restart slurmd
ready() {{ {ready}; }}
wait_until 5 ready || {{
  active slurmd || {{ echo "slurmd does not stay up"; exit 1; }}
  {nodes.describe(slot.node)}
  if {nodes.was_drained_by_slurm(slot.node)}; then
    {nodes.resume(slot.node)}
  fi
}}
""",
        within=15,
        unit="slurmd",
        undo="stop_services",
    )


def restarted(step: Step) -> Step:
    """Return a variant of the step that runs once in this operation, even if its service already runs."""
    mark = f'"$REPORT/again_{step.name}"'
    return replace(
        step,
        name=f"again_{step.name}",
        title=step.title.replace("Starting", "Restarting"),
        probe=f"[ -f {mark} ] && {step.probe}",
        act=f"{step.act}\ndate >{mark}",
    )


def _restart(unit: str, port: int, seconds: int) -> str:
    return f"restart {unit}\nwait_until {seconds} port_open {port}\n"
