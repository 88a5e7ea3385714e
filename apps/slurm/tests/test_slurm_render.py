"""Rendered files against the golden copies a Slurm admin can review. GOLDEN_UPDATE=1 writes them again."""

import dataclasses
import io
import os
import tarfile
from pathlib import Path

import pytest
from gpuaas_slurm.facts import HostFacts
from gpuaas_slurm.plan import Plan, make
from gpuaas_slurm.render import check, cluster_files
from gpuaas_slurm.render.files import archive

from apps.slurm.tests.support.slurm_examples import INSTANCE, PROJECT, member

GOLDEN = Path(__file__).parent / "golden"


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GOLDEN_UPDATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{name} changed; look at the difference, then run with GOLDEN_UPDATE=1"


def rendered(plan: Plan, allocation: str, facts: dict[str, HostFacts]) -> str:
    files = cluster_files(plan, allocation, facts)
    return "".join(f"===== {f.path} {f.mode:04o} {f.owner}\n{f.text}\n" for f in files)


def test_the_files_of_a_single_host(plan: Plan, facts: HostFacts) -> None:
    compare("single_node.txt", rendered(plan, "alloc_00000001", {"alloc_00000001": facts}))


def test_the_files_of_a_real_machine_use_control_groups(plan: Plan, facts: HostFacts) -> None:
    real = dataclasses.replace(
        facts, virt="none", cgroup="cgroup2fs", controllers=("cpuset", "cpu", "memory"), dbus=True
    )
    compare("single_node_cgroup.txt", rendered(plan, "alloc_00000001", {"alloc_00000001": real}))


def test_the_files_of_a_worker_apart_from_the_controller(facts: HostFacts) -> None:
    spread = [member("controller", 1), member("worker", 2, allocation="alloc_00000002", address="10.88.0.12")]
    both = {"alloc_00000001": facts, "alloc_00000002": dataclasses.replace(facts, hostname="gpu2")}
    compare("worker.txt", rendered(make(INSTANCE, "training", {}, spread, PROJECT), "alloc_00000002", both))


@pytest.mark.parametrize("number", [1, 2])
def test_the_files_of_a_cluster_with_one_worker_beside_the_controller(facts: HostFacts, number: int) -> None:
    both = {"alloc_00000001": facts, "alloc_00000002": dataclasses.replace(facts, hostname="gpu2")}
    mixed = [
        member("controller", 1),
        member("worker", 2),
        member("worker", 3, ordinal=1, allocation="alloc_00000002", address="10.88.0.12"),
    ]
    compare(
        f"mixed_host{number}.txt",
        rendered(make(INSTANCE, "training", {}, mixed, PROJECT), f"alloc_0000000{number}", both),
    )


def test_only_the_accounting_file_is_closed_and_it_holds_no_password(plan: Plan, facts: HostFacts) -> None:
    files = {f.path: f for f in cluster_files(plan, "alloc_00000001", {"alloc_00000001": facts})}
    dbd = files["/etc/slurm/slurmdbd.conf"]
    assert (dbd.mode, dbd.owner) == (0o600, "slurm")
    assert "StoragePass" not in dbd.text


def test_workers_of_different_kinds_share_what_all_can_do(facts: HostFacts) -> None:
    spread = [member("controller", 1), member("worker", 2, allocation="alloc_00000002")]
    real = dataclasses.replace(facts, virt="none", freezer=True)
    files = cluster_files(
        make(INSTANCE, "t1", {}, spread, PROJECT), "alloc_00000001", {"alloc_00000001": facts, "alloc_00000002": real}
    )
    assert "proctrack/cgroup" in files[0].text  # only the worker counts, and it is a real machine


@pytest.mark.parametrize(
    "line", ["Prolog=/bin/evil", "NodeName=x", "SlurmUser", "ClusterName=again", "PartitionName= ", "RebootProgram=/x"]
)
def test_the_checker_stops_a_line_that_we_never_write(line: str, plan: Plan, facts: HostFacts) -> None:
    conf = cluster_files(plan, "alloc_00000001", {"alloc_00000001": facts})[0].text
    check.slurm_conf(conf)
    with pytest.raises(check.BadConfig):
        check.slurm_conf(conf + line + "\n")


def test_the_archive_carries_modes_and_owners(plan: Plan, facts: HostFacts) -> None:
    files = cluster_files(plan, "alloc_00000001", {"alloc_00000001": facts})
    with tarfile.open(fileobj=io.BytesIO(archive(files))) as tar:
        seen = {"/" + i.name: (i.mode, i.uname) for i in tar.getmembers()}
    assert seen == {f.path: (f.mode, f.owner) for f in files}
