"""systemd drop-ins for Debian's units, which lack a usable Restart=, and the worker's options."""

from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.other_conf import slurmd_options
from gpuaas_slurm.render.slurm_conf import header

RESTART = "[Service]\nRestart=on-failure\nRestartSec=2\n"

# Started before slurmctld answers, a dynamic slurmd backs off for up to 128 s; started before slurmdbd answers,
# slurmctld may die. systemd's order is not enough (Type=simple), so they wait for the port, for a bounded time.
# On the same host the kernel is asked, since a daemon logs an error for every silent connection.
WAIT = "for i in $(seq {tries}); do {test} && exit 0; sleep 0.1; done; exit 1"
LISTENS_HERE = "grep -qs :{port:04X}.*00000000:0000.0A /proc/net/tcp"
ANSWERS_THERE = "(exec 3<>/dev/tcp/{address}/{port}) 2>/dev/null"


# Slurm sends every message in two pieces, and the kernel holds the answer to the first back for 40 ms (Nagle's rule
# meeting delayed acknowledgement). A call of the accounting client has a dozen: 0.55 s, against 0.02 s with this.
QUICKACK = """\
#!/bin/sh
{header}# quickack on|off: acknowledge at once what this host sends to itself. Best effort; only speed depends on it.
[ "$1" = off ] && words= || words="quickack 1"
ip -4 route show table local type local | while read -r route; do
  ip -4 route change ${{route%% quickack*}} table local $words 2>/dev/null
done
"""


def unit_dropin(plan: Plan, after: str = "") -> str:
    order = f"After={after}\n" if after else ""
    limits = "StartLimitIntervalSec=60\nStartLimitBurst=20\n"
    return header(plan.instance_id) + "[Unit]\n" + order + limits + RESTART


def slurmdbd_dropin(plan: Plan) -> str:
    return unit_dropin(plan, "mariadb.service munge.service") + "ExecStartPre=-/etc/gpuaas-slurm/quickack on\n"


def quickack(plan: Plan) -> str:
    return QUICKACK.format(header=header(plan.instance_id))


def slurmctld_dropin(plan: Plan) -> str:
    """Render the systemd drop-in of slurmctld. slurmctld waits half a minute for slurmdbd, then starts without it from
    the cached state."""
    wait = WAIT.format(tries=300, test=LISTENS_HERE.format(port=6819))
    keep = f"ExecStartPre=-/bin/cp /etc/slurm/slurm.conf {started_with(plan)}\n"
    return unit_dropin(plan, "munge.service slurmdbd.service") + f"ExecStartPre=-/bin/bash -c '{wait}'\n" + keep


def started_with(plan: Plan) -> str:
    """Return the path of the copy of slurm.conf with which slurmctld was started. Some keys are read only at start."""
    return f"/var/lib/gpuaas-slurm/{plan.instance_id}/started.conf"


def slurmd_dropin(plan: Plan, slot: WorkerSlot) -> str:
    local = slot.allocation_id == plan.controller.allocation_id
    test = (LISTENS_HERE if local else ANSWERS_THERE).format(address=plan.controller.address, port=6817)
    return (
        unit_dropin(plan, "munge.service slurmctld.service")
        + "EnvironmentFile=/etc/gpuaas-slurm/slurmd.env\n"
        + "EnvironmentFile=-/etc/gpuaas-slurm/admission.env\n"  # steps/admission.py: while a worker is tried out
        + f"ExecStartPre=/bin/bash -c '{WAIT.format(tries=600, test=test)}'\n"
    )


def slurmd_env(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> str:
    return header(plan.instance_id) + f"SLURMD_OPTIONS='{slurmd_options(plan, slot, facts)}'\n"
