"""Every failure a person can meet on a host: a code, a sentence, a way out, and a way back without touching a database."""

from pathlib import Path

import pytest
from gpuaas_sdk.client.models import OperationView

from tests.support.lab_stack import Ground, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(7)]

OTHER_CLOCK = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), Path("libfaketime is not installed"))


@pytest.fixture(autouse=True, scope="module")
def impatient(ground: Ground):
    """The controller gives an unreachable host a few seconds only, so that the tests need not wait a minute."""
    ground.controller_restarted_with({"GPUAAS_SLURM_UNREACHABLE_S": "4"})
    yield
    ground.controller_restarted_with({})


@pytest.fixture(autouse=True)
def nothing_left_behind(ground: Ground):
    yield
    ground.cleared()


def failed(ground: Ground, name: str, host: str) -> tuple[str, OperationView]:
    instance, operation = ground.deploy(name, host)
    done = ground.ended(operation.id, timeout=300)
    assert done.status == "failed", done
    assert done.error
    assert done.error.message
    assert done.error.way_out
    assert ground.instance(instance.id).state == "failed"
    return instance.id, done


def retried(ground: Ground, operation: OperationView) -> None:
    again = ground.demo.boss.retry_operation(ground.research, operation.id)
    done = ground.ended(again.operation.id)
    assert done.status == "succeeded", done.error
    assert done.retry_of == operation.id


def test_a_host_that_is_off_fails_the_deploy_and_a_retry_works_when_it_is_back(ground: Ground) -> None:
    ground.lab.poweroff("gpu2")
    try:
        instance_id, done = failed(ground, "host-off", "gpu2")
    finally:
        ground.lab.boot("gpu2")
    assert done.error.code == "host_unreachable"
    assert done.error.retryable
    retried(ground, done)
    ground.gone(ground.instance(instance_id))


def test_a_host_that_proves_itself_with_another_key_is_not_touched(ground: Ground) -> None:
    """As after a re-installation at the same address: the platform never signed this key."""
    swap = "cd /etc/ssh && cp -a ssh_host_ed25519_key /root/k && cp -a gpuaas/host-cert.pub /root/c && ssh-keygen -q -t ed25519 -N '' -f new && mv new ssh_host_ed25519_key && mv new.pub ssh_host_ed25519_key.pub && rm gpuaas/host-cert.pub && systemctl restart ssh"
    back = "cd /etc/ssh && cp -a /root/k ssh_host_ed25519_key && ssh-keygen -y -f ssh_host_ed25519_key > ssh_host_ed25519_key.pub && cp -a /root/c gpuaas/host-cert.pub && systemctl restart ssh"
    ground.on_host("gpu2", "systemctl", "stop", "gpuaas-agent")
    ground.on_host("gpu2", "sh", "-c", swap)
    try:
        instance_id, done = failed(ground, "wrong-key", "gpu2")
        assert done.error.code == "host_identity_wrong"
        assert ground.lab.exec("gpu2", ["test", "-e", "/var/lib/gpuaas-slurm"], timeout=60).exit != 0
    finally:
        ground.on_host("gpu2", "sh", "-c", back)
        ground.on_host("gpu2", "systemctl", "start", "gpuaas-agent")
    ground.gone(ground.instance(instance_id))


@pytest.mark.parametrize("off", ["+600", "-600"])
def test_a_host_whose_clock_is_ten_minutes_off_is_refused_with_a_word_about_its_clock(ground: Ground, off: str) -> None:
    """Its sshd finds our certificates expired, or not valid yet; nothing that comes later is reached."""
    ground.lab.push("gpu2", "/opt/other-clock.so", OTHER_CLOCK.read_bytes(), 0o755)
    ground.lab.push("gpu2", "/etc/faketimerc", f"{off}\n".encode())
    ground.lab.push("gpu2", "/etc/ld.so.preload", b"/opt/other-clock.so\n")  # every program that starts there now
    try:
        instance_id, done = failed(ground, f"clock-{off[1:]}", "gpu2")
    finally:
        ground.on_host("gpu2", "rm", "/etc/ld.so.preload", "/etc/faketimerc", "/opt/other-clock.so")
    assert done.error
    assert done.error.code == "access_refused"
    assert "clock" in done.error.way_out
    retried(ground, done)
    ground.gone(ground.instance(instance_id))


def test_a_host_without_a_needed_package_names_it_and_how_to_get_it(ground: Ground) -> None:
    ground.on_host("gpu2", "sh", "-c", "mv /usr/sbin/slurmctld /root/slurmctld")
    try:
        instance_id, done = failed(ground, "no-package", "gpu2")
    finally:
        ground.on_host("gpu2", "sh", "-c", "mv /root/slurmctld /usr/sbin/slurmctld")
    assert done.error.code == "package_missing"
    assert "slurmctld" in done.error.message
    assert "apt-get install" in done.error.message + done.error.way_out
    retried(ground, done)
    ground.gone(ground.instance(instance_id))


def test_a_port_taken_by_another_program_is_named(ground: Ground) -> None:
    squat = "setsid python3 -c 'import socket,time; s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((\"0.0.0.0\", 6817)); s.listen(); time.sleep(3000)' >/dev/null 2>&1 & echo $!"
    pid = ground.on_host("gpu2", "sh", "-c", squat).strip()
    taken = "ss -ltnH 'sport = :6817' | grep -q ."
    wait_until(lambda: ground.lab.exec("gpu2", ["bash", "-c", taken]).exit == 0, 60, "the port to be taken")
    try:
        instance_id, done = failed(ground, "port-taken", "gpu2")
    finally:
        ground.on_host("gpu2", "kill", pid)
    assert done.error.code in ("port_in_use", "preflight_failed")
    assert "6817" in done.error.message
    ground.gone(ground.instance(instance_id))


def test_a_full_disk_is_said_plainly_and_mended_by_a_retry(ground: Ground) -> None:
    ground.lab.up(7, disk_mb=600)
    ground.bring("gpu7")
    ground.lab.fill_disk("gpu7")
    instance_id, done = failed(ground, "disk-full", "gpu7")
    assert done.error.code == "disk_full"
    ground.lab.free_disk("gpu7")
    retried(ground, done)
    ground.gone(ground.instance(instance_id))


def test_a_failed_instance_can_be_decommissioned_at_once(ground: Ground) -> None:
    ground.on_host("gpu2", "sh", "-c", "mv /usr/sbin/slurmdbd /root/slurmdbd")
    try:
        instance_id, _ = failed(ground, "half-way", "gpu2")
        ground.gone(ground.instance(instance_id))
    finally:
        ground.on_host("gpu2", "sh", "-c", "mv /root/slurmdbd /usr/sbin/slurmdbd")
    assert ground.instance(instance_id).state == "deleted"


def test_decommission_while_the_deploy_is_under_way_wins(ground: Ground) -> None:
    instance, operation = ground.deploy("changed-my-mind", "gpu2")
    wait_until(lambda: ground.operation(operation.id).progress.step >= 3, 180, "the deploy to be under way")
    ground.gone(ground.instance(instance.id))
    assert ground.operation(operation.id).status == "superseded"
    ps = ground.on_host("gpu2", "ps", "-eo", "comm=").split()
    assert not {"slurmctld", "slurmd", "slurmdbd"} & set(ps)
