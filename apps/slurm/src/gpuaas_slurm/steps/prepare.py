"""The first steps on a host: record its state, write files, create the Unix user, configure services. No daemon runs
yet."""

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm.facts import UNITS
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.render.files import File, archive

WANTS = "/etc/systemd/system/multi-user.target.wants"
WORKER_UNITS = ("munge", "slurmd")

# What was here before us, so that the decommission can give the host back as it was.
REMEMBER = f"""
if [ ! -f "$OWN/before" ]; then
  if [ -e /etc/munge/munge.key ]; then install -m 0400 /etc/munge/munge.key "$OWN/munge.key.before"; fi
  states=($(systemctl is-active {" ".join(f"{u}.service" for u in UNITS)} || true))
  for u in {" ".join(UNITS)}; do
    enabled=no masked=no
    if [ -L {WANTS}/$u.service ]; then enabled=yes; fi
    if [ /etc/systemd/system/$u.service -ef /dev/null ]; then masked=yes; fi
    echo "unit $u $enabled $masked ${{states[0]}}"
    states=("${{states[@]:1}}")
  done >"$OWN/before.new"
  if id gpuaas >/dev/null 2>&1; then echo "user gpuaas" >>"$OWN/before.new"; fi
  if ip -4 route show table local | grep -q quickack; then echo quickack >>"$OWN/before.new"; fi
  mv "$OWN/before.new" "$OWN/before"
fi
"""

# Daemons load every MPI plugin; the PMIx ones cannot load unless PMIx is whole (performance.md section 8).
PMIX_PROBE = """
compgen -G '/usr/lib/*/pmix2/lib/libpmix.so' || ! compgen -G '/usr/lib/*/slurm-wlm/mpi_pmix*.so'
"""
PMIX_ACT = """
for f in /usr/lib/*/slurm-wlm/mpi_pmix*.so; do
  [ -e "$f" ] || continue
  dpkg-divert --quiet --local --rename --divert "$f.gpuaas-off" --add "$f"
done
"""


def preflight() -> Step:
    return Step(
        name="preflight",
        title="Checking the host",
        phase="checking",
        probe='[ -f "$OWN/before" ]',
        act=REMEMBER,
        undo="forget",
    )


def files(made: tuple[File, ...]) -> Step:
    """Return the step that writes the files. The host keeps their checksums, so that an observation can show which
    files were changed by hand."""
    sums = "\n".join(f"{f.sha256}  {f.path}" for f in made)
    modes = "\n".join(
        f'[ "$(stat -c %a:%U {f.path})" = {f.mode:o}:{f.owner} ] || return 1' for f in made if f.mode != 0o644
    )
    return Step(
        name="files",
        title="Writing the configuration of the cluster",
        phase="preparing",
        probe=f'[ -f "$OWN/files.sha256" ] && cmp -s "$OWN/files.sha256" - <<\'SUMS\' || return 1\n{sums}\nSUMS\n'
        f'sha256sum --status -c "$OWN/files.sha256" || return 1\n{modes}\nreturn 0',
        act="install -d -o slurm -g slurm /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm\n"
        "tar -x -m -p --same-owner --unlink-first -C / -f -\n"
        f"cat >\"$OWN/files.new\" <<'SUMS'\n{sums}\nSUMS\n"
        'mv "$OWN/files.new" "$OWN/files.sha256"',
        data=archive(made),
        undo="remove_files",
    )


def services(roles: tuple[str, ...]) -> Step:
    """Return the step that enables the services at boot and makes systemd read their drop-ins. Loaded drop-ins are
    counted, because systemd does not report that a new drop-in directory needs a reload. Querying systemd is slow, so
    the probe compares file times: files older than the mark of the last run count as read."""
    units, dropins = " ".join(roles), len([role for role in roles if role != "mariadb"])
    mark = '"$OWN/services_read"'
    unread = f"""
unread() {{
  local line read=0
  while read -r line; do
    case $line in NeedDaemonReload=yes) return ;; DropInPaths=*50-gpuaas.conf*) read=$((read + 1)) ;; esac
  done < <(systemctl show -p NeedDaemonReload -p DropInPaths {units})
  [ $read -lt {dropins} ]
}}
"""
    return Step(
        name="services",
        title="Enabling the services at boot",
        phase="preparing",
        probe=f"""
[ -f {mark} ] || return 1
for u in {units}; do
  [ -L {WANTS}/$u.service ] && [ ! /etc/systemd/system/$u.service -ef /dev/null ] || return 1
  for file in /lib/systemd/system/$u.service /etc/systemd/system/$u.service /etc/systemd/system/$u.service.d/*; do
    [ ! "$file" -nt {mark} ] || return 1
  done
done
""",
        act=f"""{unread}
for u in {units}; do
  [ ! /etc/systemd/system/$u.service -ef /dev/null ] || rm /etc/systemd/system/$u.service
  ln -sfn /lib/systemd/system/$u.service {WANTS}/$u.service
done
# A reload costs 170 ms; units that systemd has not loaded yet need none.
if unread; then
  systemctl daemon-reload
  if unread; then echo 'systemd does not take up the settings of the services'; exit 1; fi
fi
date >{mark}
""",
        undo="remove_files",
    )


def mpi() -> Step:
    return Step(
        name="mpi",
        title="Disabling MPI plugins that cannot load",
        phase="preparing",
        probe=PMIX_PROBE,
        act=PMIX_ACT,
        undo="remove_files",
    )


def user(plan: Plan, uid: int) -> Step:
    return Step(
        name="user",
        title="Creating the user that jobs run as",
        phase="preparing",
        probe=f'[ "$(id -u {plan.user})" = {uid} ]',
        act=f"""
getent group {plan.user} || groupadd --gid {uid} {plan.user}
id -u {plan.user} || useradd --uid {uid} --gid {plan.user} -m -s /bin/bash --comment 'GPUaaS jobs' {plan.user}
""",
        undo="remove_user",
    )
