"""A real Debian sshd on loopback with its own host key, and the two CAs of a platform. For test_machines.py."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh
from gpuaas_sdk.client.models import GrantView

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


@dataclass
class Ca:
    key: asyncssh.SSHKey = field(default_factory=lambda: asyncssh.generate_private_key("ssh-ed25519"))

    @property
    def public(self) -> str:
        return self.key.export_public_key("openssh").decode().strip()


class Sshd:
    """`host_principals=None` serves a bare host key; `[]` a certificate that names no host."""

    def __init__(self, directory: Path, *, user_ca: Ca, host_ca: Ca, host_principals: list[str] | None) -> None:
        self._directory, self.port = directory, _free_port()
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        _secret(directory / "host_key", host_key.export_private_key("openssh"))
        (directory / "user_ca.pub").write_text(user_ca.public + "\n")
        (directory / "principals").write_text("alloc_1\n")
        certified = host_principals is not None
        if certified:
            certificate = host_ca.key.generate_host_certificate(host_key, "node", principals=host_principals or [])
            (directory / "host_key-cert.pub").write_bytes(certificate.export_certificate("openssh"))
        (directory / "config").write_text(self._config(certified))
        self.log = directory / "log"
        command = [str(SSHD), "-D", "-f", str(directory / "config"), "-E", str(self.log)]
        self._process = subprocess.Popen(command)
        self._wait_until_up()

    def _config(self, certified: bool) -> str:
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self._directory}/host_key",
            f"HostCertificate {self._directory}/host_key-cert.pub" if certified else "",
            f"TrustedUserCAKeys {self._directory}/user_ca.pub",
            f"AuthorizedPrincipalsFile {self._directory}/principals",
            f"PidFile {self._directory}/pid",
            "AuthorizedKeysFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no",
            "PermitRootLogin prohibit-password\nStrictModes no\nLogLevel VERBOSE",
        ]
        return "\n".join(lines) + "\n"

    def _wait_until_up(self) -> None:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError(f"sshd does not come up: {self.log.read_text()}")

    def drop_connections(self) -> None:
        """Kill the session processes, not the listener."""
        for pid in _descendants(self._process.pid):
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                os.kill(pid, 9)

    def close(self) -> None:
        self.drop_connections()
        self._process.terminate()
        self._process.wait(5)


class Desk:
    """Plays Work for a Machine: signs what is asked, as the platform would, and counts."""

    def __init__(self, sshd: Sshd, *, user_ca: Ca, host_ca: Ca, principal: str = "alloc_1", expires_in_s: int = 300):
        self.port, self._user_ca, self._host_ca, self._principal = sshd.port, user_ca, host_ca, principal
        self._expires_in_s = expires_in_s
        self.granted = 0
        self.keys: list[str] = []
        self.stale: Exception | None = None

    def check(self) -> None:
        if self.stale:
            raise self.stale

    def expecting(self, seconds: float):
        import contextlib

        return contextlib.nullcontext()

    async def grant(self, allocation_id: str, ssh_public_key: str) -> GrantView:
        self.granted += 1
        self.keys.append(ssh_public_key)
        key = asyncssh.import_public_key(ssh_public_key)
        certificate = self._user_ca.key.generate_user_certificate(
            key,
            "op_1/epoch-1",
            principals=[self._principal],
            valid_after=int(time.time()) - 60,
            valid_before=int(time.time()) + self._expires_in_s,
            permit_x11_forwarding=False,
            permit_agent_forwarding=False,
            permit_port_forwarding=False,
            permit_user_rc=False,
        )
        return GrantView(
            id=f"grant_{self.granted}",
            certificate=certificate.export_certificate("openssh").decode(),
            expires_in_s=self._expires_in_s,
            address="127.0.0.1",
            port=self.port,
            login_user=getpass.getuser(),
            host_ca_public_key=self._host_ca.public,
            host_ca_public_keys=[self._host_ca.public],
            host_principal="node_1",
            allocation_id=allocation_id,
            principal=allocation_id,
        )


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _secret(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)


def _descendants(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found, frontier = [], {pid}
    while frontier := {child for child, parent in parents.items() if parent in frontier}:
        found += frontier
    return found
