"""Changes the settings of a cluster that has jobs: checks the candidate first, then applies each change with its
declared effect.

slurmctld 22.05 has no test flag and exits on an invalid file, so a Slurm client parses the candidate in a separate
place first. Removing a partition ends its jobs as NODE_FAIL, and a worker changes its GPU type only by rejoining: both
are refused while jobs run there. A refusal changes nothing.
"""

from collections.abc import Mapping

from gpuaas_sdk.host_steps.host import Host
from gpuaas_sdk.host_steps.step import Stage, Step, Task

from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, WorkerSlot
from gpuaas_slurm.render.files import SLURM_CONF, File
from gpuaas_slurm.render.other_conf import features, gres
from gpuaas_slurm.render.units import started_with
from gpuaas_slurm.settings import NEEDS_RESTART
from gpuaas_slurm.slurm import daemons, jobs, nodes, partitions

# Releases what was held back for a change that does not come: workers drained by us, partitions to be removed.
GIVE_BACK = f"""
OURS='other GPU types'
there() {{ {partitions.list_names()}; }}
give_back() {{
  {nodes.list_reasons()} | sort -u | while IFS='|' read -r n why; do
    case $why in gpuaas:*": $OURS") {nodes.set_state("$n", "undrain")} || true ;; esac
  done
  for p in $(there); do
    case " $PARTITIONS " in *" $p "*) ;; *) {partitions.set_state("$p", "up")} || true ;; esac
  done
}}
"""

# NODES: workers that rejoin. PARTITIONS: all partitions of the new settings.
WEIGH = f"""
install -d -m 0700 "$OWN/candidate"
cat >"$OWN/candidate/slurm.conf"
printed=$({daemons.parse_conf('"$OWN/candidate/slurm.conf"')} 2>&1 >/dev/null) || {{
  why=$({daemons.keep_conf_errors()} <<<"$printed" | tail -1)
  refuse settings_refused "Slurm rejects the new settings: ${{why:-it gave no reason}}. The former ones stay in force."
}}
known= kept=
refused() {{ give_back; for n in $kept; do rm -f "$OWN/drained.$n"; done; refuse "$1" "$2"; }}
if {daemons.CTLD_LISTENS}; then
  for n in $NODES; do
    IFS='|' read -r state why < <({nodes.show_states_and_reasons("$n")}) || continue  # Slurm has no such node
    known="$known $n"
    case $state in
      dr*) case $why in
             gpuaas:*": $OURS" | gres/gpu* | 'Low '*) ;;  # ours, or Slurm's own that ends with its cause
             *) kept="$kept $n"; printf '%s\\n' "$why" >"$OWN/drained.$n" ;;
           esac ;;
      *) {nodes.drain("$n", '"gpuaas:$OPERATION: $OURS"')} ;;
    esac
  done
  for n in $known; do
    jobs=$({jobs.name_some_on("$n")})
    [ -z "$jobs" ] || refused workers_busy "Jobs run on a worker whose GPUs get another type: $jobs."
    empty() {{ [[ ! $({nodes.show_state("$n")}) =~ ^(drng|comp|mix|alloc) ]]; }}
    wait_until 10 empty || refused workers_busy "A job is still being cleaned up on the worker $n."
  done
  for p in $(there); do
    case " $PARTITIONS " in *" $p "*) continue ;; esac
    {partitions.set_state("$p", "inactive")}
    jobs=$({jobs.name_some_in("$p")})
    [ -z "$jobs" ] || refused partition_in_use "Partition $p has jobs that would be lost with it: $jobs."
  done
fi
"""

# Some keys count when slurmctld starts: it is restarted when those differ from what it started with. Features of a node
# that joined before they existed are set here; of any other they are right already.
REREAD = """
chosen() {{ grep -E '^({restart})=' "$1" 2>/dev/null | sort; }}
if [ "$(chosen {started})" != "$(chosen {conf})" ]; then
  systemctl reset-failed slurmctld.service 2>/dev/null || true
  systemctl restart slurmctld.service
  answers() {{ {answers}; }}
  wait_until 20 answers
  settled() {{ ! {list_short_states} | grep -qE 'unk|\\*'; }}
  wait_until 15 settled || true  # a worker that is really away shows in the next observation
  echo slurmctld >"$REPORT/restarted"
fi
while read -r node kinds; do
  [ -n "$node" ] && [ "$({show_features})" = '(null)' ] || continue
  {set_features}
done <<'FEATURES'
{features}
FEATURES
{reconfigure}
{give_back}
knows() {{ [ "$(there | sort)" = "$(printf '%s\\n' {names} | sort)" ]; }}
wait_until 10 knows
for kept in "$OWN"/drained.*; do  # a person's drain outlives our change
  [ -f "$kept" ] || continue
  {drain_kept}
  rm -f "$kept"
done
as_read >{taken_up}.new
mv {taken_up}.new {taken_up}
date >"$REPORT/reread"
"""

# Nothing to do: no file is newer than what Slurm has taken up, its partitions are as they were then, nothing is held
# back for a change, and every node has its features.
SETTLED = """
chosen() {{ grep -E '^({restart})=' "$1" 2>/dev/null | sort; }}
[ -s {taken_up} ] && active slurmctld && port_open 6817 || return 1
for file in /etc/slurm/*.conf; do [ ! "$file" -nt {taken_up} ] || return 1; done
! compgen -G "$OWN/drained.*" || return 1
cmp -s {started} {conf} || [ "$(chosen {started})" = "$(chosen {conf})" ] || return 1
as_read | cmp -s - {taken_up} || return 1
nodes=$({list_features}) || return 1
! grep -Eq '^({nodes})[|][(]null[)][|]|: other GPU types$' <<<"$nodes"
"""


def must_rejoin(plan: Plan, facts: Mapping[str, HostFacts]) -> tuple[WorkerSlot, ...]:
    """Return the workers that must rejoin, because their GPU types differ from those that their slurmd has
    registered."""
    return tuple(slot for slot in plan.workers if _differs(plan, slot, facts[slot.allocation_id]))


def _differs(plan: Plan, slot: WorkerSlot, facts: HostFacts) -> bool:
    words = facts.options.replace('"', " ").replace("'", " ").split()
    now = next((word.removeprefix("Gres=") for word in words if word.startswith("Gres=")), "")
    return bool(facts.options) and now != (gres(plan, slot, facts) if facts.gpus else "")


def stages(plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts], conf: File) -> list[Stage]:
    """Return the stages that run before any file is written: check the candidate, and stop the workers that must
    rejoin."""
    head, rejoining = hosts[plan.controller.allocation_id], must_rejoin(plan, facts)
    made: list[Stage] = [(Task(head, weigh(plan, conf, rejoining)),)]
    if rejoining:
        made.append(tuple(Task(hosts[slot.allocation_id], set_aside()) for slot in rejoining))
        made.append((Task(head, forget_nodes(rejoining)),))
    return made


def weigh(plan: Plan, conf: File, rejoining: tuple[WorkerSlot, ...] = ()) -> Step:
    joining, names = " ".join(slot.node for slot in rejoining), " ".join(one.name for one in plan.partitions)
    mark = f"{conf.sha256} {joining}"
    in_place = f"sha256sum --status -c <<<'{conf.sha256}  {SLURM_CONF}'"
    return Step(
        name="candidate",
        title="Checking the new settings with Slurm",
        phase="checking",
        probe=f'[ "$(cat "$REPORT/candidate" 2>/dev/null)" = "{mark}" ]' + ("" if rejoining else f" || {in_place}"),
        act=f"NODES='{joining}' PARTITIONS='{names}'\n{GIVE_BACK}{WEIGH}\n"
        f"rm -f {partitions.TAKEN_UP}\necho '{mark}' >\"$REPORT/candidate\"",
        data=conf.text.encode(),
        unit="slurmctld",
        code="settings_refused",
        undo="forget",
        goes_with="files",
    )


async def let_go(plan: Plan, head: Host) -> None:
    """Let the partitions and nodes that were closed for a change accept new jobs again, after the change was canceled
    or failed."""
    names = " ".join(one.name for one in plan.partitions)
    await head.script(
        f"PARTITIONS='{names}'\n{GIVE_BACK}fence || exit 1\n! {daemons.CTLD_LISTENS} || give_back\nexit 0\n",
        step="let_go",
    )


def set_aside() -> Step:
    return Step(
        name="set_aside",
        title="Stopping the empty worker",
        phase="stopping",
        probe="off slurmd",
        act="systemctl stop slurmd.service",
        unit="slurmd",
    )


def forget_nodes(slots: tuple[WorkerSlot, ...]) -> Step:
    names = " ".join(slot.node for slot in slots)
    return Step(
        name="forget_nodes",
        title="Removing the worker's former GPUs from Slurm",
        phase="stopping",
        probe=f'[ -z "$(for n in {names}; do {nodes.show_name("$n")}; done)" ]',
        act=f"""
for n in {names}; do
  {nodes.is_missing("$n")} || {nodes.delete("$n")}
done
""",
        unit="slurmctld",
    )


def taken_up(plan: Plan, hosts: Mapping[str, Host], facts: Mapping[str, HostFacts]) -> list[Stage]:
    """Return the stage that makes Slurm use the new settings. It must run when the files are written and every service
    runs."""
    return [(Task(hosts[plan.controller.allocation_id], reread(plan, facts)),)]


def reread(plan: Plan, facts: Mapping[str, HostFacts]) -> Step:
    """Return the step that makes Slurm use the written files: by a reconfigure, or by a restart of slurmctld if a
    changed key needs a restart."""
    known = [(slot.node, features(plan, slot, facts[slot.allocation_id])) for slot in plan.workers]
    words = {
        "restart": "|".join(NEEDS_RESTART),
        "started": started_with(plan),
        "conf": SLURM_CONF,
        "taken_up": partitions.TAKEN_UP,
    }
    settled = SETTLED.format(
        **words,
        nodes="|".join(node for node, kinds in known if kinds) or "none of them",
        list_features=nodes.list_features_and_reasons(),
    )
    return Step(
        name="reread",
        title="Applying the new settings in Slurm",
        phase="starting",
        probe=f"""if [ -f "$REPORT/reread" ]; then {daemons.CTLD_ANSWERS}; return; fi
{partitions.DEFINE_AS_READ}{settled}""",
        act=partitions.DEFINE_AS_READ
        + REREAD.format(
            **words,
            answers=daemons.CTLD_ANSWERS,
            give_back=GIVE_BACK,
            list_short_states=nodes.list_short_states(),
            show_features=nodes.show_features("$node"),
            set_features=nodes.set_features("$node", "$kinds"),
            reconfigure=daemons.reconfigure(),
            drain_kept=nodes.drain('"${kept##*/drained.}"', '"$(cat "$kept")"'),
            features="\n".join(f"{node} {kinds}" for node, kinds in known if kinds),
            names=" ".join(one.name for one in plan.partitions),
        ),
        within=20,
        unit="slurmctld",
        goes_with="files",
    )
