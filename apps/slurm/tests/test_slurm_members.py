"""What the app makes of Slurm's answers about one worker, and of the hosts a worker comes to."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps.host import parse, preamble
from gpuaas_sdk.host_steps.runner import name_hosts
from gpuaas_slurm import conditions, validate
from gpuaas_slurm.facts import FIRST_UID, HostFacts, common_uid
from gpuaas_slurm.plan import Plan
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.reconcile.members import confinement
from gpuaas_slurm.render import units
from gpuaas_slurm.render.files import SHARED, File, cluster_files, joining_files
from gpuaas_slurm.render.slurm_conf import slurm_conf
from gpuaas_slurm.slurm import node_control
from gpuaas_slurm.steps import admission, catalog, nodes, teardown

ALICE = "@job 12|alice|team-a|1:02:03|RUNNING|2026-11-16T09:03:34"
BOB = "@job 13|bob|team-b|UNLIMITED|RUNNING|N/A"


def standing(*lines: str) -> node_control.NodeStatus:
    return node_control.read(parse(0, "\n".join(lines)))


def test_a_node_that_slurm_does_not_know_is_not_known() -> None:
    assert not standing("@node ").known


def test_a_drain_of_ours_is_told_from_a_persons() -> None:
    ours = standing("@node drain|root|gpuaas:op_01k9: a new disk")
    theirs = standing("@node drain|root|fan is loud")
    assert (ours.ours, ours.is_drained) == (True, True)
    assert (theirs.ours, theirs.is_drained, theirs.reason, theirs.by) == (False, True, "fan is loud", "root")


def test_a_reason_may_hold_the_separator() -> None:
    assert standing("@node drain|root|a|b").reason == "a|b"


def test_while_a_job_runs_the_node_is_not_drained_and_the_job_is_named() -> None:
    seen = standing("@node drng|root|gpuaas:op_1: x", ALICE, BOB)
    assert not seen.is_drained
    assert seen.waits_for == "job 12 of alice (at most 1:02:03 left) and 1 other job"
    endless = standing("@node drng|root|x", BOB)
    assert endless.waits_for == "job 13 of bob (with no time limit)"


def test_a_drain_tells_whose_jobs_hold_the_worker_and_when_the_last_is_over() -> None:
    later = "@job 14|carol|team-b|2:00:00|RUNNING|2026-11-16T10:00:00"
    seen = standing("@node drng|root|gpuaas:op_1: x", ALICE, later).forecast
    assert (seen["free_at"], seen["jobs_total"]) == ("2026-11-16T10:00:00Z", 2)
    alice = {"id": "12", "user": "alice", "account": "team-a", "state": "RUNNING", "ends_at": "2026-11-16T09:03:34Z"}
    assert seen["jobs"][0] == alice
    assert standing("@node drng|root|x", ALICE, BOB).forecast["free_at"] is None, "a job without a limit has no end"


def test_a_long_list_of_jobs_is_told_in_part_and_counted_whole() -> None:
    many = [f"@job {n}|alice|team-a|1:00|RUNNING|2026-11-16T09:00:00" for n in range(1, 400)]
    seen = standing("@node drng|root|x", *many).forecast
    assert (len(seen["jobs"]), seen["jobs_total"]) == (node_control.MOST_JOBS, 399)


def test_a_drain_without_a_reason_is_of_a_worker_that_has_just_joined() -> None:
    assert standing("@node drain|root|none").ours
    assert not standing("@node idle|root|none").ours
    assert standing("@node drain|root|gpuaas:op_1: x").drained_for("op_1")
    assert not standing("@node drain|root|gpuaas:op_12: x").drained_for("op_1")


def test_a_worker_that_joins_says_itself_that_it_is_drained(plan: Plan, facts: HostFacts) -> None:
    slot = plan.workers[0]
    whole = {file.path: file.text for file in cluster_files(plan, slot.allocation_id, {slot.allocation_id: facts})}
    files = joining_files(plan, slot.allocation_id, facts, {path: whole[path] for path in SHARED})
    options = next(file for file in files if file.path == admission.OPTIONS)
    assert b'Gres=gpu:a100:2 Feature=a100 State=DRAIN"' in (admission.close_door(slot, options).data or b"")
    dropin = next(file for file in files if file.path.endswith("slurmd.service.d/50-gpuaas.conf"))
    lines = dropin.text.splitlines()
    own, door = (lines.index(f"EnvironmentFile={path}") for path in (admission.OPTIONS, f"-{admission.DOOR}"))
    assert own < door, "the later file wins"


def test_the_scripts_of_admission_are_valid_shell(plan: Plan, facts: HostFacts) -> None:
    slot, host = plan.workers[0], catalog.example_host()
    options = File(admission.OPTIONS, units.slurmd_env(plan, slot, facts))
    steps = [
        admission.close_door(slot, options),
        admission.join(slot),
        admission.admit(plan, slot),
        admission.accept(plan, slot, 2),
        admission.accept(plan, slot, 0),
        admission.open_door(slot),
        nodes.delete(slot),
        nodes.restart(True, slot),
    ]
    for step in steps:
        text = preamble(PROFILE, host.claim, step=step.name, unit=step.unit, within=step.within) + step.script()
        done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, timeout=10, check=False)
        assert done.returncode == 0, f"{step.name}: {done.stderr}"
        assert step.undo in (*(made().name for made in teardown.ORDER), ""), step.name


def test_completing_without_a_job_is_still_waited_for() -> None:
    assert standing("@node comp|root|gpuaas:op_1: x").waits_for == "the node to become drained (it is busy)"


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        ("a new disk", "a new disk"),
        ("it's 'bad'; reboot", "it s bad reboot"),
        ("line\nbreak=$(id)`id`", "line break (id) id"),
        ("ünïcode", "n code"),
        ("", ""),
    ],
)
def test_a_persons_words_cannot_leave_their_quotes(output: str, kept: str) -> None:
    assert validate.plain(output) == kept


def test_one_number_for_the_user_on_every_host(facts: HostFacts) -> None:
    assert common_uid([facts, facts]) == FIRST_UID
    busy = replace(facts, taken_uids=frozenset({FIRST_UID, FIRST_UID + 1}))
    assert common_uid([facts, busy]) == FIRST_UID + 2
    assert common_uid([busy, replace(facts, uid=1001)]) == 1001


def test_a_host_where_the_number_is_taken_or_the_name_has_another_is_refused(facts: HostFacts) -> None:
    ask = conditions.same_uid(FIRST_UID).ask
    assert ask(facts, "")[0]
    assert ask(replace(facts, uid=FIRST_UID, taken_uids=frozenset({FIRST_UID})), "")[0]
    taken, why = ask(replace(facts, taken_uids=frozenset({FIRST_UID})), "")
    assert not taken
    assert "belongs to another user" in why
    other, why = ask(replace(facts, uid=1000), "")
    assert not other
    assert "uid 1000" in why


def test_a_worker_that_holds_jobs_together_in_another_way_is_refused(plan: Plan, facts: HostFacts) -> None:
    running = slurm_conf(plan, facts, (facts,))
    assert confinement(running) == ("linuxproc",)
    assert conditions.same_confinement(("linuxproc",)).ask(facts, "")[0]
    bare = replace(facts, virt="none", freezer=True)
    assert not conditions.same_confinement(("linuxproc",)).ask(bare, "")[0]


def test_a_worker_that_joins_gets_byte_for_byte_what_the_others_have(plan: Plan, facts: HostFacts) -> None:
    slot = plan.workers[0]
    whole = {file.path: file.text for file in cluster_files(plan, slot.allocation_id, {slot.allocation_id: facts})}
    joined = joining_files(plan, slot.allocation_id, facts, {path: whole[path] for path in SHARED})
    assert all(file.text == whole[file.path] for file in joined)
    assert {*SHARED, "/etc/slurm/gres.conf", "/etc/gpuaas-slurm/slurmd.env"} <= {file.path for file in joined}


def test_many_hosts_are_named_in_short() -> None:
    assert name_hosts(["a", "b"]) == " (a, b)"
    assert name_hosts(list("abcde")) == " (a, b, c and 2 more)"


@pytest.mark.parametrize(("failures", "code"), [(0, 0), (3, 0), (99, 3)])
def test_a_scheduler_that_drops_a_connection_is_asked_again(tmp_path: Path, failures: int, code: int) -> None:
    """W4: one broken pipe, or a slurmctld that is back two seconds later, used to fail the operation."""
    for name, prints in (("sinfo", "idle|root|none"), ("squeue", "")):
        count = tmp_path / f"{name}.count"
        count.write_text("0")
        program = tmp_path / name
        program.write_text(
            f"#!/bin/bash\nn=$(<{count}); echo $((n + 1)) >{count}\n"
            f'[ "$n" -ge {failures} ] || {{ echo "slurm_load_node: Broken pipe" >&2; exit 1; }}\necho "{prints}"\n'
        )
        program.chmod(0o755)
    helpers = 'fence() { :; }; refuse() { exit 3; }; port_open() { :; }; sleep() { :; }; say() { echo "@$1 $2"; }\n'
    script = helpers + node_control.BEGIN + node_control._read_script("gpu2")  # pyright: ignore[reportPrivateUsage]
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False, env=env)
    assert done.returncode == code, done.stderr
    assert ("@node idle|root|none" in done.stdout) == (code == 0)
