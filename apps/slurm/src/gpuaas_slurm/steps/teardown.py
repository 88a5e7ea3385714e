"""The order in which a cluster is removed from a host. Every step also works on a host that was never, or only partly,
set up.

Only what the platform created is removed: files with its header, a key with its hash, and a user and services that did
not exist according to `before`. The first deploy step writes `before`; without it nothing was changed.
"""

from collections.abc import Sequence
from typing import Any

from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Stage, Step, Task, in_one_go

from gpuaas_slurm.plan import UNIX_USER
from gpuaas_slurm.render.other_conf import DATABASE, DATABASE_USER
from gpuaas_slurm.slurm import jobs
from gpuaas_slurm.slurm.daemons import STOP_DATABASE
from gpuaas_slurm.steps import packages
from gpuaas_slurm.steps.prepare import WANTS

SLURM_UNITS = "slurmd slurmctld slurmdbd"
DROPINS = "/etc/systemd/system/{munge,slurmdbd,slurmctld,slurmd}.service.d/50-gpuaas.conf"
FILES = f"/etc/slurm/{{slurm,slurmdbd,gres,cgroup}}.conf /etc/mysql/mariadb.conf.d/60-gpuaas-slurm.cnf {DROPINS}"

# was UNIT active|enabled|masked: how the host had it before us.
HELPERS = f"""{STOP_DATABASE}
was() {{
  case $2 in
    active) grep -q "^unit $1 [a-z]* [a-z]* active$" "$OWN/before" ;;
    enabled) grep -q "^unit $1 yes " "$OWN/before" ;;
    masked) grep -q "^unit $1 [a-z]* yes " "$OWN/before" ;;
  esac
}}
touched() {{ [ -f "$OWN/before" ]; }}
ours() {{ grep -qs "^# Managed by GPUaaS: instance $INSTANCE$" "$1"; }}
our_files() {{ local f; for f in {FILES}; do ours "$f" && echo "$f"; done; return 0; }}
diverted() {{ compgen -G '/usr/lib/*/slurm-wlm/mpi_pmix*.so.gpuaas-off'; }}
quick_routes() {{ grep -qs '^quickack$' "$OWN/before" || ip -4 route show table local | grep quickack; }}
strays() {{
  pgrep -x 'slurmstepd|slurmd|slurmctld|slurmdbd' 2>/dev/null  # it finds the whole pattern too long, and matches
  grep -lsz '^SLURM_JOB_ID=' /proc/[0-9]*/environ | cut -d/ -f3
  return 0
}}
strays_named() {{
  local p
  for p in $(strays | sort -u); do
    echo "$(cat "/proc/$p/comm") of $(grep -oEm1 '[^/]*[.](service|scope)' "/proc/$p/cgroup" || echo 'no service');"
  done 2>/dev/null | tr '\\n' ' '
}}
"""


def _step(probe: str, act: str, **words: Any) -> Step:
    return Step(probe=HELPERS + probe, act=HELPERS + act, **words)


def stop_jobs() -> Step:
    """Return the step that cancels the jobs. Jobs that do not end within 5 s end with their daemon in the next step."""
    return _step(
        name="stop_jobs",
        title="Stopping the jobs that still run",
        phase="stopping",
        probe='! touched || [ -f "$REPORT/stop_jobs" ] || ! port_open 6817',
        act=f"""
none() {{ [ -z "$({jobs.list_ids()})" ]; }}
{jobs.list_ids()} | xargs -r timeout 10 scancel || true
wait_until 5 none || true
date >"$REPORT/stop_jobs"
""",
    )


def stop_services() -> Step:
    return _step(
        name="stop_services",
        title="Stopping the Slurm services",
        phase="stopping",
        probe=f"""
why_not() {{ say fail "teardown_incomplete|$(hostname -s) is not clean, they come back: $(strays_named)"; }}
! touched || {{ off {SLURM_UNITS} && [ -z "$(strays)" ]; }}
""",
        act=f"""
systemctl stop {SLURM_UNITS} || true
quiet() {{ [ -z "$(strays)" ]; }}
end_strays() {{ strays | sort -u | xargs -r kill -KILL 2>/dev/null; quiet; }}
wait_until 10 end_strays || refuse teardown_incomplete "$(hostname -s) is not clean, they come back: $(strays_named)"
systemctl reset-failed {SLURM_UNITS} 2>/dev/null || true
""",
        within=20,
        code="teardown_incomplete",
        unit="slurmctld",
    )


def drop_accounting() -> Step:
    """Return the step that drops the database user, then the schema. If the schema directory is missing, both are
    gone."""
    return _step(
        name="drop_accounting",
        title="Removing the accounting database",
        phase="removing",
        probe=f"""
touched || return 0
[ ! -d /var/lib/mysql/{DATABASE} ] && {{ was mariadb active || off mariadb; }}
""",
        act=f"""
if [ -d /var/lib/mysql/{DATABASE} ]; then
  systemctl reset-failed mariadb.service 2>/dev/null || true
  active mariadb || systemctl start mariadb.service
  mariadb -e "DROP USER IF EXISTS '{DATABASE_USER}'@'localhost'; DROP DATABASE IF EXISTS {DATABASE}"
fi
was mariadb active || stop_database
""",
        within=20,
        unit="mariadb",
    )


def remove_key() -> Step:
    return _step(
        name="remove_key",
        title="Removing the cluster's key",
        phase="removing",
        probe="""
touched || return 0
[ ! -e "$OWN/munge.key.sha256" ] && [ ! -e "$OWN/munge.key.before" ] && { was munge active || off munge; }
""",
        act="""
systemctl stop munge.service
rm -f /etc/munge/.munge.key.new
if [ -e /etc/munge/munge.key ] && [ "$(sha256sum </etc/munge/munge.key)" = "$(cat "$OWN/munge.key.sha256")" ]; then
  shred -u /etc/munge/munge.key
fi
if [ -e "$OWN/munge.key.before" ]; then
  install -o munge -g munge -m 0400 "$OWN/munge.key.before" /etc/munge/munge.key
  rm "$OWN/munge.key.before"
fi
rm -f "$OWN/munge.key.sha256"
if was munge active; then systemctl start munge.service; fi
systemctl reset-failed munge.service 2>/dev/null || true
""",
        unit="munge",
    )


def remove_user() -> Step:
    return _step(
        name="remove_user",
        title="Removing the user that jobs ran as",
        phase="removing",
        probe=f'! touched || grep -q "^user {UNIX_USER}$" "$OWN/before" || ! id {UNIX_USER}',
        act=f"""
pkill -KILL -u {UNIX_USER} || true
gone() {{ ! pgrep -u {UNIX_USER}; }}
wait_until 5 gone
userdel -r {UNIX_USER}
if getent group {UNIX_USER} >/dev/null; then groupdel {UNIX_USER}; fi
""",
    )


def remove_files() -> Step:
    """Return the step that removes configuration, drop-ins, spool, logs and diverted plugins, and restores which
    services are enabled."""
    return _step(
        name="remove_files",
        title="Removing the configuration and the spool",
        phase="removing",
        probe="""
[ -z "$(our_files)" ] || return 1
touched || return 0
[ ! -e /etc/gpuaas-slurm ] && ! diverted && [ ! -e "$OWN/files_left" ] && [ -e "$OWN/files_gone" ]
""",
        act=f"""
if [ -x /etc/gpuaas-slurm/quickack ] && [ -n "$(quick_routes)" ]; then /etc/gpuaas-slurm/quickack off || true; fi
our_files | xargs -r rm -f
rmdir {DROPINS.replace("/50-gpuaas.conf", "")} 2>/dev/null || true
rm -rf /etc/gpuaas-slurm /var/lib/slurm/slurmctld/* /var/lib/slurm/slurmd/* /var/log/slurm/*.log*
for f in $(diverted || true); do dpkg-divert --quiet --local --rename --remove "${{f%.gpuaas-off}}"; done
while read -r kind u _; do
  [ "$kind" = unit ] || continue
  was $u enabled || rm -f {WANTS}/$u.service
  if was $u masked; then ln -sfn /dev/null /etc/systemd/system/$u.service; fi
done <"$OWN/before"
systemctl daemon-reload
date >"$OWN/files_gone"
""",
    )


def prove_clean() -> Step:
    """Return the step that collects evidence about everything of the platform that could be left on the host. Each
    claim collects its own evidence."""
    return _step(
        name="prove_clean",
        title="Proving that the host is clean",
        phase="proving",
        probe='[ -f "$REPORT/clean.$EPOCH" ]',
        act=EVIDENCE + 'date >"$REPORT/clean.$EPOCH"',
        code="teardown_incomplete",
    )


def forget() -> Step:
    """Return the step that removes the app's own notes. It must run last. A mark in /run, which a reboot deletes, still
    rejects late commands of older claims."""
    return _step(
        name="forget",
        title="Removing the app's own notes from the host",
        phase="removing",
        probe='[ ! -e "$OWN" ]',
        act='rm -rf "$OWN"\ndelete_old_marks\n[ -n "$(ls -d "$BASE"/*/ 2>/dev/null)" ] || rm -rf "$BASE"',
    )


EVIDENCE = f"""{packages.INSTALLED}
check() {{ if [ -z "$2" ]; then say check "$1|yes|$3"; else say check "$1|no|$2"; fi; }}
line() {{ tr '\\n' ' ' | cut -c1-200; }}
running() {{ systemctl list-units --no-legend --plain --state=active,activating,reloading,failed 'slurm*' | line; }}
spool() {{ find /var/lib/slurm/slurmctld /var/lib/slurm/slurmd -mindepth 1 | line; }}
user_left() {{ grep -q '^user {UNIX_USER}$' "$OWN/before" || id {UNIX_USER} 2>/dev/null; }}
check configuration "$(our_files | line)" "no file, unit or drop-in has the mark of this instance"
if touched; then
  check directory "$(ls -d /etc/gpuaas-slurm 2>/dev/null)" "the directory of the app's files is gone"
  check processes "$(strays_named | line)" "no Slurm daemon, step or job process runs"
  check services "$(running)" "no Slurm service is active"
  check ports "$(ss -ltnH 'sport = :6817 or sport = :6818 or sport = :6819' | line)" "nothing listens on 6817 to 6819"
  check key "$(ls "$OWN/munge.key.sha256" 2>/dev/null | line)" "the munge key of the cluster is gone"
  check munge "$(was munge active || pgrep -x munged | line)" "munge is as the host had it before"
  check plugins "$(diverted | line)" "every plugin is back in its place"
  check routes "$(quick_routes | line)" "the routes of the host to itself are as before"
  check spool "$(spool)" "no state or spool of jobs is left"
  check database "$(ls -d /var/lib/mysql/{DATABASE} 2>/dev/null | line)" "the accounting database and its user are gone"
  check database_service "$(was mariadb active || pgrep -x mariadbd | line)" "the database service is as it was before"
  check user "$(user_left)" "no user is left"
  check packages "$([ ! -f "$OWN/packages.before" ] || came_with_us | line)" "no package of ours is left"
  for u in munge mariadb slurmdbd slurmctld slurmd; do
    now=no; then=no
    if [ -L {WANTS}/$u.service ]; then now=yes; fi
    if was $u enabled; then then=yes; fi
    check "enablement_$u" "$([ $now = $then ] || echo "enabled: $now, before: $then")" "as before ($then)"
  done
else
  say check "trace|yes|the host holds no trace of this instance"
fi
"""


ORDER = (
    stop_jobs,
    stop_services,
    drop_accounting,
    remove_key,
    remove_user,
    remove_files,
    packages.remove,
    prove_clean,
    forget,
)


def stages(hosts: Sequence[Host]) -> list[Stage]:
    """Return the teardown stages: end the jobs, tear down all workers' hosts concurrently, then the controller's host
    (the last in `hosts`)."""
    *apart, head = hosts
    made: list[Stage] = [(Task(head, stop_jobs()),)]
    for some in (apart, [head]):
        if some:
            made += [tuple(Task(host, stop_services()) for host in some), *emptied(some)]
    return made


def emptied(hosts: Sequence[Host]) -> list[Stage]:
    """Return the stages after the services have stopped. The app's notes are removed by a separate command after the
    evidence has arrived, because the evidence cannot be collected again without the notes."""
    *after, last = [tuple(Task(host, step()) for host in hosts) for step in ORDER[ORDER.index(stop_services) + 1 :]]
    return [in_one_go(*after), last]
