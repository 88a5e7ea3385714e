"""The fence of host.sh, run for real in bash with its directories moved: an older claim can never act."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps.host import STALE_EXIT, Claim, preamble
from gpuaas_slurm.profile import PROFILE

OLD, NEW = "op_01k9aaaaaaaaaaaaaaaaaaaaaa", "op_01k9bbbbbbbbbbbbbbbbbbbbbb"
INSTANCE = "inst_00000001"


def script(root: Path, operation: str, epoch: int, act: str, probe: str = "true", member: str = "") -> str:
    text = preamble(PROFILE, Claim(INSTANCE, operation, epoch, member), step="files", unit="", within=1)
    text = text.replace("BASE=/var/lib/gpuaas-slurm", f"BASE={root}/lib").replace(
        "RUN=/run/gpuaas-slurm", f"RUN={root}/run"
    )
    return f"{text}\nprobe() {{ {probe}; }}\nact() {{ {act}; }}\nrun_act\n"


def act(
    root: Path, operation: str, epoch: int, what: str = "echo acted", probe: str = "true"
) -> subprocess.CompletedProcess[str]:
    text = script(root, operation, epoch, what, probe)
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=60, check=False)


def journal(root: Path) -> list[dict]:
    path = root / "lib/journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def begun(root: Path) -> None:
    """An act has written down that it is under way."""
    deadline = time.monotonic() + 60
    while not journal(root):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_newest_claim_acts_and_leaves_a_line(tmp_path: Path) -> None:
    done = act(tmp_path, OLD, 3)
    assert (done.returncode, done.stdout) == (0, "acted\n")
    (line,) = journal(tmp_path)
    assert (line["operation"], line["epoch"], line["step"]) == (OLD, 3, "files")


@pytest.mark.parametrize(("operation", "epoch"), [(OLD, 9), (NEW, 1)])
def test_an_older_claim_is_refused_and_changes_nothing(tmp_path: Path, operation: str, epoch: int) -> None:
    act(tmp_path, NEW, 2)
    done = act(tmp_path, operation, epoch, "echo evil")
    assert done.returncode == STALE_EXIT
    assert "evil" not in done.stdout
    assert len(journal(tmp_path)) == 1


def test_a_later_operation_starts_with_a_low_epoch(tmp_path: Path) -> None:
    act(tmp_path, OLD, 9)
    assert act(tmp_path, NEW, 1).returncode == 0


def test_a_bare_number_in_the_file_fences_too(tmp_path: Path) -> None:
    own = tmp_path / "lib" / INSTANCE
    own.mkdir(parents=True)
    (own / "epoch").write_text("5\n")
    assert act(tmp_path, NEW, 4).returncode == STALE_EXIT
    assert act(tmp_path, NEW, 5).returncode == 0


def test_after_the_notes_are_gone_the_mark_in_run_still_fences(tmp_path: Path) -> None:
    act(tmp_path, NEW, 1, 'rm -rf "$BASE"')
    assert act(tmp_path, OLD, 1).returncode == STALE_EXIT


def test_a_claim_that_takes_over_waits_for_the_last_act_of_the_former_one(tmp_path: Path) -> None:
    slow = subprocess.Popen(["bash", "-c", script(tmp_path, OLD, 1, f"sleep 0.6; echo old >>{tmp_path}/order")])
    begun(tmp_path)
    assert act(tmp_path, OLD, 2, f"echo new >>{tmp_path}/order").returncode == 0
    assert slow.wait(timeout=60) == 0
    assert (tmp_path / "order").read_text() == "old\nnew\n"


def test_looking_waits_for_an_act_of_the_same_claim_whose_connection_broke(tmp_path: Path) -> None:
    slow = subprocess.Popen(["bash", "-c", script(tmp_path, NEW, 1, f"sleep 0.6; echo act >>{tmp_path}/order")])
    begun(tmp_path)
    look = script(tmp_path, NEW, 1, "true").replace("\nrun_act\n", f"\nfence; alone; echo look >>{tmp_path}/order\n")
    assert subprocess.run(["bash", "-c", look], timeout=60, check=False).returncode == 0
    assert slow.wait(timeout=60) == 0
    assert (tmp_path / "order").read_text() == "act\nlook\n"


def test_acts_of_one_claim_run_side_by_side(tmp_path: Path) -> None:
    """Each waits until the others are there, too."""
    act(tmp_path, NEW, 1)
    meet = f"touch {tmp_path}/here.$$; until [ $(ls {tmp_path}/here.* | wc -l) = 3 ]; do sleep 0.05; done"
    all_three = [subprocess.Popen(["bash", "-c", script(tmp_path, NEW, 1, meet)]) for _ in range(3)]
    try:
        assert [one.wait(timeout=60) for one in all_three] == [0, 0, 0]
    finally:
        for one in all_three:
            one.kill()


def test_a_failing_command_in_the_middle_ends_the_act(tmp_path: Path) -> None:
    done = act(tmp_path, NEW, 1, "echo one; false; echo two")
    assert done.returncode == 1
    assert "one" in done.stdout
    assert "two" not in done.stdout


def test_an_act_that_does_not_bring_its_state_about_fails(tmp_path: Path) -> None:
    done = act(tmp_path, NEW, 1, "true", probe="false")
    assert (done.returncode, "@unverified files" in done.stdout) == (1, True)


def test_an_act_survives_a_controller_that_is_gone(tmp_path: Path) -> None:
    text = script(tmp_path, NEW, 1, f"echo first; sleep 0.3; echo second; touch {tmp_path}/whole")
    child = subprocess.Popen(["bash", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    child.stderr.close()
    child.wait(timeout=60)
    assert (tmp_path / "whole").exists()


ONE, OTHER = "mem_00000001", "mem_00000002"


def act_on(root: Path, member: str, operation: str, epoch: int) -> int:
    text = script(root, operation, epoch, "echo acted", member=member)
    return subprocess.run(["bash", "-c", text], capture_output=True, timeout=60, check=False).returncode


def test_operations_on_two_members_do_not_fence_each_other(tmp_path: Path) -> None:
    act(tmp_path, "op_01k9000000000000000000000a", 1)
    for member, operation, epoch in [(ONE, OLD, 3), (OTHER, NEW, 1), (ONE, OLD, 3), (ONE, OLD, 4), (OTHER, NEW, 1)]:
        assert act_on(tmp_path, member, operation, epoch) == 0


def test_on_one_member_the_older_claim_is_refused(tmp_path: Path) -> None:
    assert act_on(tmp_path, ONE, NEW, 2) == 0
    assert act_on(tmp_path, ONE, NEW, 1) == STALE_EXIT
    assert act_on(tmp_path, ONE, OLD, 9) == STALE_EXIT


def test_a_newer_operation_on_the_whole_refuses_one_on_a_member_and_the_other_way_round(tmp_path: Path) -> None:
    assert act_on(tmp_path, ONE, OLD, 1) == 0
    assert act(tmp_path, "op_01k9000000000000000000000a", 9).returncode == STALE_EXIT, "a deploy that woke up late"
    assert act(tmp_path, NEW, 1).returncode == 0
    assert act_on(tmp_path, ONE, OLD, 1) == STALE_EXIT
    assert act_on(tmp_path, OTHER, OLD, 5) == STALE_EXIT


def test_a_probe_that_never_holds_can_say_what_stands_in_the_way(tmp_path: Path) -> None:
    done = act(tmp_path, NEW, 1, probe="why_not() { say fail 'teardown_incomplete|sleep comes back'; }; false")
    assert done.returncode == 1
    assert "@fail teardown_incomplete|sleep comes back" in done.stdout
