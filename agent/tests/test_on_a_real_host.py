"""The agent on a real host with a real sshd: who gets in, who does not, and what survives kill, reboot and a full disk."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from gpuaas_lab import agentfiles
from gpuaas_lab.hosts import Lab

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: run `make test` as root")]

TOKEN = "one-time-token-0123456789"
HOST = "gpu1"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    fresh = Lab("agenttest")
    fresh.down()
    fresh.up(1, disk_mb=256)
    yield fresh
    fresh.down()


@pytest.fixture(scope="module")
def real(lab: Lab, start_platform: Any) -> Any:
    """A platform on the lab's bridge that this host has joined."""
    record = lab.state.load_lab()
    assert record is not None
    fake = start_platform(str(record.plan.gateway))
    lab.allow_port(fake.address[1])
    agentfiles.install(lab, HOST, {"api": fake.url, "token": TOKEN})
    soon(lambda: fake.nodes and fake.node()["applied"] == 1, "the host joined", lab)
    return fake


class Login:
    """An SSH client as the platform equips one: a fresh key, a certificate, the authority of hosts, nothing else."""

    def __init__(self, lab: Lab, platform: Any, folder: Path) -> None:
        self.platform, self.folder, self.address = platform, folder, lab.status()[0].address
        key = Ed25519PrivateKey.generate()
        self.line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        (folder / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
        (folder / "key").chmod(0o600)
        (folder / "known_hosts").write_text(platform.known_hosts_line())

    def works(self, principal: str | None, life_s: int = 300, **more: Any) -> bool:
        certificate = self.folder / "key-cert.pub"
        certificate.unlink(missing_ok=True)
        if principal:
            certificate.write_text(self.platform.user_certificate(self.line, principal, life_s, **more) + "\n")
        return self.ssh().returncode == 0

    def ssh(self) -> "subprocess.CompletedProcess[str]":
        settings = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": self.folder / "known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            "IdentitiesOnly": "yes",
            "ConnectTimeout": "60",
            "HostKeyAlias": self.platform.node()["id"],
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        command = ["ssh", "-F", "/dev/null", "-i", str(self.folder / "key"), *options, f"root@{self.address}", "true"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def login(lab: Lab, real: Any, tmp_path: Path) -> Login:
    return Login(lab, real, tmp_path)


def soon(holds: Callable[[], Any], what: str, lab: Lab, within: float = 180) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"not within {within} s: {what}\n{agentfiles.last_words(lab, HOST)}"
        time.sleep(0.05)


def allow(lab: Lab, platform: Any, *principals: str) -> None:
    generation = platform.allow(*principals)
    soon(lambda: platform.node()["applied"] == generation, f"generation {generation} applied", lab)


def test_a_certificate_for_the_held_allocation_opens_the_door(lab: Lab, real: Any, login: Login) -> None:
    allow(lab, real, "alloc_a")
    assert login.works("alloc_a"), login.ssh().stderr


def test_every_other_certificate_or_key_is_refused(lab: Lab, real: Any, login: Login) -> None:
    allow(lab, real, "alloc_a")
    assert not login.works("alloc_b")
    assert not login.works("root")
    assert not login.works(None)
    assert not login.works("alloc_a", life_s=-1), "an expired certificate opened the door"


def test_a_released_allocation_loses_access_with_the_report(lab: Lab, real: Any, login: Login) -> None:
    allow(lab, real, "alloc_a")
    assert login.works("alloc_a")
    allow(lab, real)
    assert not login.works("alloc_a")


def test_a_host_that_cannot_prove_itself_is_not_logged_into(lab: Lab, real: Any, login: Login) -> None:
    allow(lab, real, "alloc_a")
    stranger = Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    (login.folder / "known_hosts").write_text(f"@cert-authority * {stranger}\n")
    assert not login.works("alloc_a")


def test_passwords_and_own_keys_on_the_host_are_no_way_in(lab: Lab, real: Any, login: Login) -> None:
    lab.push(HOST, "/root/.ssh/authorized_keys", login.line + b"\n", 0o600)
    assert not login.works(None)
    effective = lab.exec(HOST, ["sshd", "-T"]).text
    assert "passwordauthentication no" in effective
    assert "authorizedkeysfile none" in effective


def test_killed_again_and_again_while_trust_changes_it_ends_with_the_right_trust(
    lab: Lab, real: Any, login: Login
) -> None:
    for number in range(10):
        real.allow(f"alloc_{number}")
        time.sleep(0.01 * number)
        lab.exec(HOST, ["systemctl", "kill", "--signal=KILL", "gpuaas-agent"])
        lab.exec(HOST, ["systemctl", "restart", "gpuaas-agent"])
    soon(lambda: real.node()["applied"] == real.node()["generation"], "the last trust applied", lab)
    assert login.works("alloc_9")
    assert not login.works("alloc_8")
    assert list(real.nodes) == ["node_1"]


def test_however_often_it_is_killed_systemd_brings_it_back(lab: Lab, real: Any) -> None:
    for _ in range(12):
        lab.exec(HOST, ["systemctl", "kill", "--signal=KILL", "gpuaas-agent"])
        lab.exec(HOST, ["systemctl", "restart", "gpuaas-agent"], timeout=60)
    beats = real.node()["beats"]
    soon(lambda: real.node()["beats"] > beats, "alive after being killed twelve times", lab)


def test_a_power_cut_right_after_a_change_loses_nothing(lab: Lab, real: Any, login: Login) -> None:
    """Neither the trust, nor what is revoked, nor which claims are over."""
    allow(lab, real, "alloc_a")
    assert login.works("alloc_a", key_id="op_9/1")
    assert login.works("alloc_a", key_id="op_9/2")
    real.revoke(4711)
    generation = real.allow("alloc_p")
    time.sleep(0.05)
    lab.poweroff(HOST)
    lab.boot(HOST)
    soon(lambda: real.node()["applied"] == generation, "applied after the power cut", lab)
    assert login.works("alloc_p")
    assert not login.works("alloc_p", key_id="op_9/1"), "a claim that is over opened the door after a power cut"
    assert not login.works("alloc_p", serial=4711)
    assert login.works("alloc_p", key_id="op_9/2", serial=4712)


def test_a_host_that_boots_while_the_platform_is_away_still_lets_its_holder_in(
    lab: Lab, real: Any, login: Login
) -> None:
    allow(lab, real, "alloc_a")
    real.down()
    lab.poweroff(HOST)
    lab.boot(HOST)
    assert login.works("alloc_a")
    real.up()
    beats = real.node()["beats"]
    soon(lambda: real.node()["beats"] > beats, "heartbeats after the platform came back", lab)


def test_a_damaged_sshd_config_is_not_made_worse(lab: Lab, real: Any, login: Login) -> None:
    """An operator damages /etc/ssh/sshd_config: the running sshd is not reloaded into death."""
    allow(lab, real, "alloc_a")
    soon(lambda: login.works("alloc_a"), "the door to be open before", lab)
    lab.exec(
        HOST, ["sh", "-c", "echo 'Nonsense yes' >> /etc/ssh/sshd_config; rm /etc/ssh/sshd_config.d/50-gpuaas.conf"]
    )
    generation = real.allow("alloc_b")
    soon(lambda: "Bad configuration option" in agentfiles.last_words(lab, HOST), "the agent says what is wrong", lab)
    assert real.node()["applied"] < generation
    works = login.works("alloc_a")
    said = "" if works else lab.exec(HOST, ["journalctl", "--unit=ssh", "--lines=15", "--no-pager"]).text
    assert works, f"the running sshd no longer lets the holder in: {login.ssh().stderr}\n{said}"
    lab.exec(HOST, ["sed", "-i", "/Nonsense/d", "/etc/ssh/sshd_config"])
    soon(lambda: real.node()["applied"] == generation, "applied once the config is right again", lab)
    assert login.works("alloc_b")


def test_a_full_disk_delays_the_trust_and_breaks_nothing(lab: Lab, real: Any, login: Login) -> None:
    allow(lab, real, "alloc_a")
    lab.fill_disk(HOST)
    generation = real.allow("alloc_b")
    time.sleep(1)
    assert real.node()["applied"] < generation
    assert login.works("alloc_a")
    lab.free_disk(HOST)
    soon(lambda: real.node()["applied"] == generation, "applied once there is space", lab)
    assert login.works("alloc_b")


def test_the_used_token_is_nowhere_on_the_disk(lab: Lab, real: Any) -> None:
    found = lab.exec(HOST, ["grep", "-rl", TOKEN, "/etc", "/var/lib/gpuaas-agent", "/opt/gpuaas-agent"])
    assert found.text == ""
