"""Stops a cluster without deleting it: jobs return to the queue, services stop and stay off over a reboot."""

from collections.abc import Mapping

from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Stage, Step, Task

from gpuaas_slurm.facts import UNITS
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.render.other_conf import DATABASE
from gpuaas_slurm.slurm import daemons as slurm_daemons
from gpuaas_slurm.slurm import jobs
from gpuaas_slurm.steps import daemons, teardown
from gpuaas_slurm.steps.prepare import WANTS, WORKER_UNITS


def requeue() -> Step:
    """Return the step that requeues batch jobs, so that they start again with the cluster. Jobs that cannot be requeued
    (srun, salloc) are canceled."""
    return Step(
        name="requeue",
        title="Putting running jobs back into the queue",
        phase="stopping",
        probe=f'[ -f "$REPORT/requeue" ] || ! {slurm_daemons.CTLD_LISTENS}',
        act=f"""
running() {{ {jobs.list_running()}; }}
none() {{ [ -z "$(running)" ]; }}
for round in 1 2 3 4 5; do
  for job in $(running); do {jobs.requeue('"$job"')} || timeout 5 scancel "$job" || true; done
  if wait_until 4 none; then break; fi
done
date >"$REPORT/requeue"
""",
        within=30,
        unit="slurmctld",
    )


def off(roles: tuple[str, ...]) -> Step:
    """Return the step that stops and disables the services, and kills leftover processes of jobs that have just
    ended."""
    units = " ".join(reversed(roles))
    ours = " ".join(role for role in reversed(roles) if role != "mariadb")
    return Step(
        name="off",
        title="Stopping the services",
        phase="stopping",
        probe=f"""{teardown.HELPERS}
off {units} && [ -z "$(strays)" ] || return 1
for u in {units}; do [ ! -e {WANTS}/$u.service ] || return 1; done
""",
        act=f"""{teardown.HELPERS}
for u in {units}; do rm -f {WANTS}/$u.service; done
systemctl stop {ours}
{"stop_database" if "mariadb" in roles else ""}
ended() {{
  for pid in $(strays | sort -u); do kill -KILL "$pid" 2>/dev/null || true; done
  [ -z "$(strays)" ]
}}
wait_until 10 ended || {{ ps -o pid=,stat=,args= -p "$(strays | sort -u | paste -sd,)"; exit 1; }}
systemctl reset-failed {units} 2>/dev/null || true
""",
        within=30,
        unit="slurmctld",
    )


def stages(plan: Plan, hosts: Mapping[str, Host]) -> list[Stage]:
    head = hosts[plan.controller.allocation_id]
    apart = [host for host in hosts.values() if host is not head]
    made: list[Stage] = [(Task(head, requeue()),)]
    if apart:
        made.append(tuple(Task(host, off(WORKER_UNITS)) for host in apart))
    return [*made, (Task(head, off(UNITS)),)]


def restart_stages(plan: Plan, hosts: Mapping[str, Host]) -> list[Stage]:
    """Return the stages that restart all services. Jobs keep running."""
    head = hosts[plan.controller.allocation_id]
    return [
        (Task(head, daemons.restarted(daemons.accounting())),),
        (Task(head, daemons.restarted(daemons.scheduler(plan))),),
        tuple(
            Task(
                hosts[w.allocation_id],
                daemons.restarted(daemons.worker(w, beside_scheduler=hosts[w.allocation_id] is head)),
            )
            for w in plan.workers
        ),
    ]


def dump_stages(head: Host) -> list[Stage]:
    """Return the stage that dumps the accounting database. The dump stays on the host until the next upgrade."""
    return [
        (
            Task(
                head,
                Step(
                    name="dump",
                    title="Keeping a copy of the accounting database",
                    phase="preparing",
                    probe='[ -f "$REPORT/dump" ]',
                    act=f"""
umask 077
mariadb-dump --single-transaction {DATABASE} | gzip -1 >"$OWN/accounting.sql.gz.new"
gzip -t "$OWN/accounting.sql.gz.new" && mv "$OWN/accounting.sql.gz.new" "$OWN/accounting.sql.gz"
date >"$REPORT/dump"
""",
                    within=120,
                    unit="mariadb",
                    code="accounting_not_ready",
                ),
            ),
        )
    ]
