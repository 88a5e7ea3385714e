"""The order of steps, and that each of them can be taken back."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps.host import Claim, preamble
from gpuaas_sdk.host_steps.step import Step, Task, survey
from gpuaas_sdk.host_steps.validate import BadWord
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.profile import PROFILE
from gpuaas_slurm.slurm.daemons import STOP_DATABASE
from gpuaas_slurm.steps import catalog, daemons, deploy, keys, lost_worker, packages, teardown

HOST = catalog.example_host()
NEW = keys.NewKey(b"0123456789abcdef" * 8)


def all_steps() -> list[Step]:
    facts = HostFacts(hostname="gpu1", gpus=("/dev/nvidia0",))
    made = [(Task(HOST, packages.install("0" * 64)),)]
    made += deploy.stages(catalog.example_plan(), {HOST.allocation_id: HOST}, {HOST.allocation_id: facts})
    made += [(Task(HOST, keys.make()),), *keys.stages(HOST, [], keys.NewKey(b"x")), (Task(HOST, keys.bring(NEW)),)]
    made.append((Task(HOST, lost_worker.down(catalog.example_plan().workers[0])),))
    return [task.step for stage in [*made, *teardown.stages([HOST])] for task in stage]


def stage_of(kind: str) -> dict[str, int]:
    return {row["name"]: row["stage"] for row in catalog.listing()[kind]}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("preflight", "files"), ("files", "identity"), ("files", "database"), ("identity", "accounting"), ("database", "accounting"),
        ("user", "accounts"), ("accounting", "accounts"), ("accounts", "scheduler"), ("mpi", "scheduler"), ("scheduler", "worker"),
        ("worker", "first_job"), ("first_job", "batch_job"),
    ],
)  # fmt: skip
def test_a_step_waits_for_what_it_needs(first: str, then: str) -> None:
    assert stage_of("deploy")[first] < stage_of("deploy")[then]


def test_the_teardown_stops_before_it_removes_and_proves_before_it_forgets() -> None:
    order = list(stage_of("decommission"))
    assert order.index("stop_services") < order.index("drop_accounting") < order.index("remove_files")
    assert order[-2:] == ["prove_clean", "forget"]


def test_every_deploy_step_names_the_teardown_step_that_takes_it_back() -> None:
    listed = catalog.listing()
    undone = {row["undo"] for row in listed["deploy"]}
    assert undone <= {row["name"] for row in listed["decommission"]}


@pytest.mark.parametrize(("runs", "stopped"), [("worker1-former", True), ("worker1-now", False), (None, True)])
def test_a_slurmd_that_came_back_with_its_host_is_stopped_before_it_has_the_key(
    runs: str | None, stopped: bool
) -> None:
    """A fresh host runs none; stopping it then does nothing."""
    words = daemons.NO_OTHER_NODE.format(node="worker1-now")
    waits = [sys.executable, "-c", "import time; time.sleep(60)", "-Z", "-N", str(runs), "-D"]
    with subprocess.Popen(waits) as slurmd:
        main = slurmd.pid if runs else 0
        reported = f"systemctl() {{ case $1 in show) echo {main} ;; *) echo $@ ;; esac; }}"
        argv = ["bash", "-c", f"set -euo pipefail\n{reported}\n{words}"]
        output = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout
        slurmd.kill()
    assert output == ("stop slurmd.service\n" if stopped else "")


def test_a_worker_that_joins_is_the_only_node_of_its_host_before_the_key_comes() -> None:
    async def key() -> bytes:
        return NEW.data

    act = daemons.join_key(key, "hash", catalog.example_plan().workers[0]).act
    assert act.index("systemctl stop slurmd.service") < act.index("mv /etc/munge/.munge.key.new /etc/munge/munge.key")


def test_the_notes_of_a_host_go_only_when_its_evidence_has_arrived() -> None:
    """A controller that dies with the evidence in its hands can gather it again as long as they are there."""
    together = [{task.step.name for task in stage} for stage in teardown.stages([HOST])]
    assert {"forget"} in together
    assert not any({"prove_clean", "forget"} <= names for names in together)


def test_no_host_switches_before_all_have_the_new_key_and_the_script_never_holds_it() -> None:
    listed = stage_of("rotate_keys")
    assert listed["new_key"] < listed["bring_key"] < listed["switch_key"] < listed["keys_agree"]
    reported = "".join(step.script() for step in (keys.bring(NEW), keys.switch(NEW), keys.agree()))
    assert NEW.data.decode() not in reported
    assert NEW.sum in reported


def test_step_names_are_unique_and_titles_are_sentences() -> None:
    steps = all_steps()
    assert len({s.name for s in steps}) == len(steps)
    assert all(s.title[0].isupper() and " " in s.title for s in steps)


@pytest.mark.parametrize("step", all_steps(), ids=lambda s: s.name)
def test_every_script_is_valid_shell(step: Step) -> None:
    text = preamble(PROFILE, HOST.claim, step=step.name, unit=step.unit, within=step.within) + step.script()
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, timeout=10, check=False)
    assert done.returncode == 0, done.stderr


def test_the_survey_is_valid_shell() -> None:
    text = preamble(PROFILE, HOST.claim, step="look", unit="", within=1) + survey(all_steps(), PROFILE.units)
    assert subprocess.run(["bash", "-n"], input=text, text=True, timeout=10, check=False).returncode == 0


@pytest.mark.parametrize("bad", ["inst_1;reboot", "inst_$(id)", "../../etc", "inst_0000\n0001"])
def test_an_id_cannot_leave_its_place_in_a_script(bad: str) -> None:
    with pytest.raises(BadWord):
        preamble(PROFILE, Claim(bad, "op_00000001", 1), step="files", unit="", within=1)
    with pytest.raises(BadWord):
        preamble(PROFILE, Claim("inst_00000001", bad, 1), step="files", unit="", within=1)


def test_the_command_lists_every_step_as_json() -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "gpuaas_slurm", "steps", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    listed = json.loads(done.stdout)
    assert [row["name"] for row in listed["deploy"]][:3] == ["packages", "preflight", "files"]
    assert len(listed["decommission"]) == len(teardown.ORDER)


@pytest.mark.parametrize("step", all_steps(), ids=lambda s: s.name)
def test_no_script_reads_a_file_in_a_way_that_ends_it_when_there_is_none(step: Step) -> None:
    """Under `set -e`, bash leaves at `$(<file)` without a word if there is no such file; `$(cat file)` is an answer."""
    assert "$(<" not in step.script()


@pytest.mark.parametrize(
    ("state", "stops", "calls"),
    [
        ("active", True, ["is-active", "stop"]),
        ("activating", True, ["is-active", "start", "stop"]),
        ("deactivating", False, ["is-active", "stop", "kill --signal=KILL", "stop", "reset-failed"]),
    ],
)
def test_the_database_is_never_stopped_in_its_start_and_killed_if_it_blocks(
    tmp_path: Path, state: str, stops: bool, calls: list[str]
) -> None:
    fakes = f"""
systemctl() {{ local all="$*"; echo "${{all% mariadb.service}}" >>{tmp_path}/calls; [ "$1" != is-active ] || echo {state}; }}
timeout() {{ shift; "$@"; [ "$2" != stop ] || {str(stops).lower()}; }}
"""
    subprocess.run(["bash", "-euc", f"{fakes}{STOP_DATABASE}stop_database"], check=True, timeout=30)
    assert (tmp_path / "calls").read_text().splitlines() == calls
