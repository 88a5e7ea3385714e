"""State files: written before the thing exists, whole or not at all."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gpuaas_lab import places, run, state
from gpuaas_lab.errors import ExecTimeout, LabBusy
from gpuaas_lab.processes import Process
from gpuaas_lab.state import HostRecord, LabRecord, State


def test_a_host_record_comes_back_as_it_was_written() -> None:
    record = HostRecord("gpu1", 11, "/image", gpus=4, disk_mb=512, supervisor=Process(1, 2), leader=Process(3, 4))
    State("default").save_host(record)
    assert State("default").load_hosts() == {"gpu1": record}


def test_hosts_are_listed_in_the_order_of_their_addresses() -> None:
    for name, number in (("gpu10", 20), ("gpu2", 12), ("gpu1", 11)):
        State("default").save_host(HostRecord(name, number, "/image"))
    assert list(State("default").load_hosts()) == ["gpu1", "gpu2", "gpu10"]


def test_a_crash_while_writing_leaves_the_former_record(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = HostRecord("gpu1", 11, "/image")
    State("default").save_host(kept)
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("power cut")))
    with pytest.raises(OSError, match="power cut"):
        State("default").save_host(HostRecord("gpu1", 99, "/image"))
    assert State("default").load_hosts() == {"gpu1": kept}


def test_a_lab_keeps_its_slot_and_others_get_the_next() -> None:
    assert State("default").claim_slot(set()) == 0
    assert [State("anna").claim_slot(set()), State("ben").claim_slot(set()), State("anna").claim_slot(set())] == [
        1,
        2,
        1,
    ]


def test_a_slot_whose_bridge_exists_outside_our_registry_is_left_alone() -> None:
    assert State("anna").claim_slot({1, 2}) == 3


def test_a_released_slot_is_given_out_again() -> None:
    State("anna").claim_slot(set())
    State("anna").release_slot()
    assert State("ben").claim_slot(set()) == 1


def test_a_lab_record_carries_its_plan() -> None:
    record = LabRecord("anna", 3, "10.88.3.0/24", [8080])
    State("anna").save_lab(record)
    loaded = State("anna").load_lab()
    assert loaded is not None
    assert loaded.plan.bridge == "gpuaas3"


def test_a_second_command_on_the_same_lab_waits_and_then_says_busy() -> None:
    with State("default").locked(), pytest.raises(LabBusy), State("default").locked(timeout=0.1):
        pass


def test_labs_do_not_lock_each_other() -> None:
    with State("default").locked(), State("anna").locked(timeout=0.1):
        pass


def test_a_lock_file_that_down_deleted_is_not_mistaken_for_the_lock() -> None:
    lab = State("default")
    with lab.locked():
        (places.state_root() / "default.lock").unlink()
        with lab.locked(timeout=20):
            assert (places.state_root() / "default.lock").exists()


def test_the_lock_outlives_a_killed_command_until_its_child_has_ended() -> None:
    """Otherwise `down` could run while an orphaned `ip link add` is still about to make something."""
    holder = (
        "import os, signal, subprocess\n"
        "from gpuaas_lab import run\nfrom gpuaas_lab.state import State\n"
        "with State('default').locked():\n"
        "    subprocess.Popen(['sleep', '3'], pass_fds=tuple(run.inherited))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", holder], env=os.environ, check=False, timeout=60)
    started = time.monotonic()
    with State("default").locked(timeout=60):
        assert time.monotonic() - started > 0.2, "the lock was free although the killed command's child still worked"


def test_a_program_that_hangs_is_killed_with_everything_it_started() -> None:
    with pytest.raises(ExecTimeout):
        run.run(["sh", "-c", "sleep 61 & sleep 61"], timeout=0.3)


def test_a_reused_process_id_is_not_our_process() -> None:
    me = Process.of(os.getpid())
    assert me is not None
    assert me.alive
    assert not Process(me.pid, me.started + 1).alive


def test_labs_lists_the_folders() -> None:
    State("anna").save_lab(LabRecord("anna", 1, "10.88.1.0/24", []))
    assert state.labs() == ["anna"]
