"""Installs missing packages from the package set on the host. The host's own apt decides what is missing.

apt uses only the set: no other source, no other list. The installed packages are recorded first, so that the
decommission removes exactly what the platform installed, also after a crash in the middle.
"""

from gpuaas_sdk.host_steps.step import Step

from gpuaas_slurm import validate
from gpuaas_slurm.facts import PROGRAMS, UNITS
from gpuaas_slurm.packages.build import WANTED
from gpuaas_slurm.steps.prepare import WANTS

FOLDER = "/opt/gpuaas/slurm"  # where the platform's agent may put files of apps
LACKING = "the host lacked packages"
MARK = "# gpuaas-slurm: no service starts while packages are installed"

INSTALLED = f"""
installed() {{ dpkg-query -W -f='${{Package}} ${{db:Status-Abbrev}}\\n' | awk '$2 ~ /^i/ {{print $1}}' | sort -u; }}
came_with_us() {{ comm -13 "$OWN/packages.before" <(installed); }}
policy_gone() {{ if grep -qs "^{MARK}" /usr/sbin/policy-rc.d; then rm -f /usr/sbin/policy-rc.d; fi; }}
"""

REMEMBER = """
if [ ! -f "$OWN/packages.before" ]; then
  installed >"$OWN/packages.before.new"
  if [ -e /var/lib/mysql ]; then touch "$OWN/mysql.before"; fi
  mv "$OWN/packages.before.new" "$OWN/packages.before"
fi
"""

# A file the host already has for this purpose is left alone: its services are then stopped after they came.
INSTALL = f"""
repo=$OWN/packages
rm -rf "$repo" && mkdir -p "$repo/lists/partial" "$repo/cache/archives/partial"
tar -x -C "$repo" -f "$SET"
echo "deb [trusted=yes] file:$repo ./" >"$repo/sources.list"
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\n{MARK}\nexit 101\n' >/usr/sbin/policy-rc.d.new
  chmod 0755 /usr/sbin/policy-rc.d.new && mv /usr/sbin/policy-rc.d.new /usr/sbin/policy-rc.d
fi
trap policy_gone EXIT
export DEBIAN_FRONTEND=noninteractive
apt="apt-get -q -o Dir::Etc::sourcelist=$repo/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$repo/lists"
apt="$apt -o Dir::Cache=$repo/cache -o APT::Sandbox::User=root -o APT::Install-Recommends=false"
apt="$apt -o DPkg::Lock::Timeout=60"
dpkg --configure -a || true  # a former act may have been cut off in the middle; apt mends what is left
$apt update
$apt -y --no-remove -o Dpkg::Options::=--force-confold install {" ".join(WANTED)}
rm -rf "$repo"
"""

STOP = f"""
for u in {" ".join(UNITS)}; do
  if came_with_us | grep -qxE "$u(-server)?"; then
    systemctl stop $u.service 2>/dev/null || true
    rm -f {WANTS}/$u.service
  fi
done
"""

SOUND = f"""
[ "$?" = 0 ] && [ -z "$(dpkg --audit)" ] && ! grep -qs "^{MARK}" /usr/sbin/policy-rc.d
"""
PROBE = f"""
for p in {" ".join(PROGRAMS)}; do command -v "$p" || return 1; done
{SOUND}"""


def path_of(sha256: str) -> str:
    return f"{FOLDER}/packages-{validate.word('sha256', sha256)[:16]}.tar"


def install(sha256: str) -> Step:
    return Step(
        name="packages",
        title="Installing the packages that the host lacks",
        phase="preparing",
        probe=PROBE,
        act=f"SET={path_of(sha256)}\n{INSTALLED}{REMEMBER}{INSTALL}{STOP}{_note(sha256)}",
        within=300,
        undo="remove_packages",
        when=LACKING,
    )


def renew(sha256: str) -> Step:
    """Return the step that upgrades the packages which the platform installed on the host, from the package set.
    Running services continue until they are restarted."""
    return Step(
        name="renew_packages",
        title="Installing newer packages",
        phase="preparing",
        probe=f'[ "$(cat "$OWN/packages.set" 2>/dev/null)" = {validate.word("sha256", sha256)} ]\n{SOUND}',
        act=f"SET={path_of(sha256)}\n{INSTALLED}{INSTALL}{_note(sha256)}",
        within=300,
        undo="remove_packages",
        when="an upgrade finds a newer package set",
    )


def _note(sha256: str) -> str:
    return f'echo {validate.word("sha256", sha256)} >"$OWN/packages.set"\n'


def remove() -> Step:
    """Return the step that removes the packages which the platform installed, with their settings. Database files are
    deleted only if the host had none before."""
    return Step(
        name="remove_packages",
        title="Removing the packages that came with the cluster",
        phase="removing",
        probe=f'{INSTALLED}[ ! -f "$OWN/packages.before" ] || [ -z "$(came_with_us)" ]',
        act=f"""{INSTALLED}
policy_gone
export DEBIAN_FRONTEND=noninteractive
came_with_us | xargs -r dpkg --purge
[ -e "$OWN/mysql.before" ] || rm -rf /var/lib/mysql /var/log/mysql
rm -rf "$OWN/packages" {FOLDER}/packages-*.tar
rmdir --ignore-fail-on-non-empty {FOLDER} 2>/dev/null || true
systemctl daemon-reload
""",
        within=60,
        when=LACKING,
    )
