"""Boots real hosts and breaks them. Uses its own lab, so it can run beside a running `make up`."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from gpuaas_lab import places, plan
from gpuaas_lab.errors import ExecTimeout, HostNeedsDisk, HostOff
from gpuaas_lab.hosts import HostStatus, Lab
from gpuaas_lab.probe import sshd_speaks
from gpuaas_lab.processes import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: run `make test` as root")]

NAME = "labtest"
BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=4)"
CLI = [sys.executable, "-c", "from gpuaas_lab.cli import main; main()"]


def left_behind() -> dict[str, list[str]]:
    """Everything a lab could leave behind on this machine, of this lab only (others may be working)."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if f"/{NAME}/" in line]
    spaces = [path.name for path in Path("/run/netns").glob(f"{plan.namespace_prefix(NAME)}*")]
    links = [link["ifname"] for link in _json("ip", "-j", "link") if _ours(link)]
    tables = [line for line in _text("nft", "list", "tables").splitlines() if line.endswith(plan.nft_table(NAME))]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{plan.cgroup_name(NAME)}")]
    processes = [line for line in _text("ps", "-eo", "pid,stat,args").splitlines() if plan.namespace(NAME, "") in line]
    files = [str(path) for path in places.state_root().glob(f"{NAME}*")]
    nspawn = [str(path) for path in Path("/run/systemd/nspawn").rglob("*") if plan.namespace(NAME, "") in path.name]
    found = {
        "mounts": mounts,
        "namespaces": spaces,
        "links": links,
        "nft tables": tables,
        "cgroups": groups,
        "processes": processes,
        "files": files,
        "nspawn files": nspawn,
    }
    return {kind: things for kind, things in found.items() if things}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    fresh = Lab(NAME)
    fresh.down()
    yield fresh
    fresh.down()
    assert left_behind() == {}


@pytest.fixture(scope="module")
def api() -> Iterator[socket.socket]:
    """Stands for the platform's API: the one port hosts may reach."""
    with closing(_listener()) as server:
        yield server


@pytest.fixture(scope="module")
def hosts(lab: Lab, api: socket.socket) -> list[HostStatus]:
    return lab.up(2, gpus=2, api_ports=[api.getsockname()[1]])


def test_two_hosts_come_up_and_their_sshd_answers(hosts: list[HostStatus]) -> None:
    assert [host.name for host in hosts] == ["gpu1", "gpu2"]
    assert all(sshd_speaks(host.address) for host in hosts)


def test_a_second_up_keeps_the_hosts_as_they_run(lab: Lab, hosts: list[HostStatus]) -> None:
    assert lab.up(2) == hosts, "their processes are the same, too"


def test_a_command_runs_as_root_with_its_exit_code_input_and_output(lab: Lab, hosts: list[HostStatus]) -> None:
    result = lab.exec("gpu1", ["sh", "-c", "id -u; cat; echo oops >&2; exit 7"], input=b"hello")
    assert (result.exit, result.text, result.error_text) == (7, "0\nhello", "oops\n")


def test_a_command_that_hangs_is_killed_on_the_host_too(lab: Lab, hosts: list[HostStatus]) -> None:
    with pytest.raises(ExecTimeout):
        lab.exec("gpu1", ["sleep", "4711"], timeout=0.5)
    soon(lambda: lab.exec("gpu1", ["pgrep", "-f", "sleep 4711"]).exit == 1, "it to be gone")


def test_each_host_is_a_machine_of_its_own(lab: Lab, hosts: list[HostStatus]) -> None:
    def seen(name: str) -> list[str]:
        files = "/etc/hostname /etc/machine-id /proc/sys/kernel/random/boot_id /etc/ssh/ssh_host_ed25519_key.pub"
        return lab.exec(name, ["sh", "-c", f"cat {files}"]).text.splitlines()

    one, two = seen("gpu1"), seen("gpu2")
    assert (one[0], two[0]) == ("gpu1", "gpu2")
    assert not set(one) & set(two), "two hosts share an identity"


def test_the_host_starts_with_sshd_and_without_any_scheduler_running(lab: Lab, hosts: list[HostStatus]) -> None:
    units = ["ssh", "munge", "slurmctld", "slurmd", "slurmdbd", "mariadb"]
    soon(
        lambda: lab.exec("gpu2", ["systemctl", "is-active", "ssh"]).exit == 0, "sshd to have told systemd that it is up"
    )
    active = lab.exec("gpu2", ["systemctl", "is-active", *units]).text.split()
    enabled = lab.exec("gpu2", ["systemctl", "is-enabled", *units]).text.split()
    assert active == ["active"] + ["inactive"] * 5
    assert enabled == ["enabled"] + ["disabled"] * 5
    assert lab.exec("gpu1", ["systemctl", "--failed", "--no-legend"]).text == ""


def test_the_scheduler_daemons_and_their_database_really_run_in_a_host(lab: Lab, hosts: list[HostStatus]) -> None:
    script = Path(__file__).with_name("start_slurm.sh").read_bytes()
    result = lab.exec("gpu1", ["bash", "-s"], input=script, timeout=240)
    assert result.exit == 0, result.text + result.error_text
    assert result.text.splitlines()[-2:] == ["gpu1 idle", "CUDA_VISIBLE_DEVICES=0"]


def test_the_image_brings_no_keys(lab: Lab, hosts: list[HostStatus]) -> None:
    assert lab.exec("gpu2", ["test", "-e", "/etc/munge/munge.key"]).exit == 1
    assert lab.exec("gpu1", ["test", "-e", "/root/.ssh/authorized_keys"]).exit == 1
    assert lab.exec("gpu1", ["passwd", "--status", "root"]).text.split()[1] in {"L", "NP"}


def test_fake_gpus_are_character_devices_anyone_may_open(lab: Lab, hosts: list[HostStatus]) -> None:
    shown = lab.exec("gpu2", ["stat", "-c", "%F %t:%T %a", "/dev/nvidia0", "/dev/nvidia1"]).text.splitlines()
    assert shown == ["character special file c3:0 666", "character special file c3:1 666"]
    assert lab.exec("gpu2", ["test", "-e", "/dev/nvidia2"]).exit == 1


def test_hosts_reach_each_other_but_have_no_route_out(lab: Lab, hosts: list[HostStatus]) -> None:
    assert lab.exec("gpu1", ["ping", "-c1", "-W2", hosts[1].address]).exit == 0
    assert lab.exec("gpu1", ["ip", "route", "show", "default"]).text == ""
    assert lab.exec("gpu1", ["ping", "-c1", "-W1", "192.0.2.1"]).exit != 0


def test_the_bridge_keeps_its_address_when_cables_come_and_go(lab: Lab, hosts: list[HostStatus]) -> None:
    """By itself it takes the lowest of its cables', and hosts that knew another one speak into the void for seconds."""
    bridge = next(link for link in _json("ip", "-j", "link", "show", "type", "bridge") if _ours(link))
    set_by_the_lab = "3"
    assert Path(f"/sys/class/net/{bridge['ifname']}/addr_assign_type").read_text().strip() == set_by_the_lab


def test_hosts_and_controllers_reach_only_the_api_port_of_this_machine(
    lab: Lab, hosts: list[HostStatus], api: socket.socket
) -> None:
    gateway, space = _gateway(hosts), lab.controller_namespace("ctl")
    with closing(_listener()) as other:
        for server, expected in ((api, True), (other, False)):
            where = [gateway, str(server.getsockname()[1])]
            from_host = lab.exec("gpu1", ["python3", "-c", CONNECT, *where]).exit == 0
            control = subprocess.run(
                [*space.prefix, sys.executable, "-c", CONNECT, *where], capture_output=True, timeout=60
            )
            assert (from_host, control.returncode == 0) == (expected, expected), where


def test_a_controller_in_its_namespace_reaches_a_hosts_sshd_and_nothing_outside(
    lab: Lab, hosts: list[HostStatus]
) -> None:
    space = lab.controller_namespace("ctl")
    reach = "import socket,sys; print(socket.create_connection((sys.argv[1], 22), timeout=20).recv(4))"
    found = subprocess.run(
        [*space.prefix, sys.executable, "-c", reach, hosts[0].address], timeout=60, capture_output=True, text=True
    )
    assert found.stdout == "b'SSH-'\n", found.stderr
    assert space.address.endswith(".5")
    assert _text(*space.prefix, "ip", "route", "show", "default") == ""


def test_a_host_cannot_route_around_through_the_bridge(lab: Lab, hosts: list[HostStatus], api: socket.socket) -> None:
    """Even a root user on the host who adds a default route meets a closed door."""
    gateway, machine, port = _gateway(hosts), _address_of_this_machine(), str(api.getsockname()[1])
    lab.exec("gpu2", ["ip", "route", "add", "default", "via", gateway])
    assert lab.exec("gpu2", ["python3", "-c", CONNECT, gateway, port]).exit == 0
    assert lab.exec("gpu2", ["python3", "-c", CONNECT, machine, port]).exit != 0
    lab.exec("gpu2", ["ip", "route", "del", "default"])


def test_a_pushed_file_arrives_whole_with_its_mode(lab: Lab, hosts: list[HostStatus]) -> None:
    data = os.urandom(300_000)
    lab.push("gpu1", "/etc/gpuaas/deep/file", data, 0o640)
    assert lab.exec("gpu1", ["cat", "/etc/gpuaas/deep/file"]).stdout == data
    assert lab.exec("gpu1", ["stat", "-c", "%a", "/etc/gpuaas/deep/file"]).text == "640\n"


def test_a_power_cut_silences_the_host_and_boot_brings_the_same_disk_back(lab: Lab, hosts: list[HostStatus]) -> None:
    lab.push("gpu2", "/root/note", b"still here")
    connection = socket.create_connection((hosts[1].address, 22), timeout=20)
    connection.recv(64)
    lab.poweroff("gpu2")
    assert not sshd_speaks(hosts[1].address, timeout=0.5)
    connection.settimeout(0.5)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    connection.close()
    with pytest.raises(HostOff):
        lab.exec("gpu2", ["true"])
    assert [host.state for host in lab.status()] == ["up", "off"]
    assert lab.boot("gpu2").address == hosts[1].address
    assert lab.exec("gpu2", ["cat", "/root/note"]).text == "still here"
    assert lab.exec("gpu2", ["test", "-c", "/dev/nvidia1"]).exit == 0


def test_nothing_on_a_host_notices_that_its_power_is_cut(lab: Lab) -> None:
    """A process that waits for PID 1 must not see its socket close and write down that its request failed."""
    unit = b"[Service]\nType=oneshot\nExecStart=/bin/sleep 600\n"
    lab.push("gpu2", "/etc/systemd/system/slow.service", unit)
    waits = "for n in 1 2 3 4 5 6 7 8; do (systemctl start slow.service; echo noticed >>/root/noticed; sync) & done"
    lab.exec("gpu2", ["systemctl", "daemon-reload"])
    lab.exec("gpu2", ["systemd-run", "--unit=waits", "--property=Type=forking", "sh", "-c", waits])
    started = ["sh", "-c", "test $(pgrep -cx systemctl) = 8"]
    assert wait_until(lambda: lab.exec("gpu2", started).exit == 0, 60)
    lab.poweroff("gpu2")
    lab.boot("gpu2")
    assert lab.exec("gpu2", ["test", "-e", "/root/noticed"]).exit == 1


def test_a_host_that_reboots_itself_is_still_reachable_for_commands(lab: Lab, hosts: list[HostStatus]) -> None:
    before = lab.exec("gpu2", BOOT_ID).text
    lab.exec("gpu2", ["systemctl", "reboot", "--force"])

    def back() -> bool:
        with suppress(HostOff, ExecTimeout):
            after = lab.exec("gpu2", BOOT_ID, timeout=5)
            return after.exit == 0 and after.text != before and sshd_speaks(hosts[1].address)
        return False

    soon(back, "the host to come back from its own reboot")


def test_three_hosts_after_two_adds_one(lab: Lab, hosts: list[HostStatus]) -> None:
    assert [host.name for host in lab.up(3)] == ["gpu1", "gpu2", "gpu3"]


def test_a_host_with_a_limited_disk_can_really_be_full_and_freed_again(lab: Lab, hosts: list[HostStatus]) -> None:
    lab.up(1, prefix="small", disk_mb=128)
    lab.fill_disk("small1")
    refused = lab.exec("small1", ["dd", "if=/dev/zero", "of=/root/x", "count=9"])
    assert "No space left on device" in refused.error_text
    lab.free_disk("small1")
    assert lab.exec("small1", ["sh", "-c", "echo x > /root/x"]).exit == 0
    with pytest.raises(HostNeedsDisk):
        lab.fill_disk("gpu1")


def test_a_host_can_lack_a_package(lab: Lab, hosts: list[HostStatus]) -> None:
    lab.up(1, prefix="bare", without_packages=["slurmd"])
    assert lab.exec("bare1", ["sh", "-c", "command -v slurmd"]).exit != 0
    assert lab.exec("gpu1", ["sh", "-c", "command -v slurmd"]).exit == 0


def test_the_command_line_passes_the_exit_code_on_and_speaks_json(lab: Lab, hosts: list[HostStatus]) -> None:
    assert (
        subprocess.run([*CLI, "exec", "--lab", NAME, "gpu1", "--", "sh", "-c", "exit 9"], timeout=120).returncode == 9
    )
    shown = json.loads(_text(*CLI, "status", "--lab", NAME, "-o", "json"))
    assert {host["name"]: host["state"] for host in shown["hosts"]}["gpu1"] == "up"


def test_exec_works_while_another_command_holds_the_lab(lab: Lab, hosts: list[HostStatus]) -> None:
    with lab.state.locked():
        assert lab.exec("gpu1", ["true"]).exit == 0


def test_down_leaves_no_mount_namespace_link_or_process(lab: Lab, hosts: list[HostStatus]) -> None:
    assert left_behind() != {}
    lab.down()
    assert left_behind() == {}


def test_down_twice_is_harmless(lab: Lab) -> None:
    lab.down()
    lab.down()
    assert left_behind() == {}


@pytest.mark.parametrize("after", [0.30, 0.38, 0.42, 0.46, 0.50, 0.55, 0.60, 0.70, 0.85, 1.0])
def test_down_cleans_up_after_up_was_killed_at_any_moment(lab: Lab, after: float) -> None:
    up = subprocess.Popen([*CLI, "up", "--lab", NAME, "--hosts", "3"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(after)
    up.send_signal(signal.SIGKILL)
    up.communicate(timeout=120)
    lab.down()
    assert left_behind() == {}


def test_up_finishes_what_a_killed_up_began(lab: Lab) -> None:
    up = subprocess.Popen([*CLI, "up", "--lab", NAME, "--hosts", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.5)
    up.send_signal(signal.SIGKILL)
    up.communicate(timeout=120)
    assert [host.state for host in lab.up(2)] == ["up", "up"]
    assert lab.exec("gpu2", ["true"]).exit == 0


def test_down_finds_everything_by_name_when_the_state_files_are_lost(lab: Lab) -> None:
    lab.up(2)
    for file in lab.state.folder.rglob("*.json"):
        file.unlink()
    lab.down()
    assert left_behind() == {}


def test_down_clears_the_files_that_a_reboot_of_the_machine_leaves(lab: Lab) -> None:
    """After a reboot, mounts, namespaces and processes are gone, and files are left. Imitated by removing them."""
    lab.up(2)
    kept = {path: path.read_bytes() for path in lab.state.folder.glob("**/*.json")}
    lab.down()
    for path, data in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert [host.state for host in lab.status()] == ["off", "off"]
    assert [host.state for host in lab.up(2)] == ["up", "up"]
    lab.down()
    assert left_behind() == {}


def soon(holds: Callable[[], bool], what: str) -> None:
    assert wait_until(holds, 180, every=0.1), f"waited for {what}"


def _listener(port: int = 0) -> socket.socket:
    """A server on all addresses of this machine."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("0.0.0.0", port))
    server.listen(16)
    threading.Thread(target=lambda: _accept(server), daemon=True).start()
    return server


def _gateway(hosts: list[HostStatus]) -> str:
    return hosts[0].address.rsplit(".", 1)[0] + ".1"


def _accept(server: socket.socket) -> None:
    while True:
        try:
            server.accept()
        except OSError:
            return


def _address_of_this_machine() -> str:
    found = [entry for entry in _json("ip", "-j", "-4", "addr") if not entry["ifname"].startswith(("lo", "gpuaas"))]
    return next(info["local"] for entry in found for info in entry["addr_info"])


def _ours(link: dict) -> bool:
    return link.get("ifalias") == plan.link_tag(NAME)


def _json(*argv: str) -> list[dict]:
    return json.loads(_text(*argv) or "[]")


def _text(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True).stdout
