"""Applies trust to sshd: validates the files in a separate place, writes them, validates again and reloads. If sshd
rejects them, the old files are restored.

sshd reads authorities and principals at each login, so a changed allocation needs no reload. Only a changed certificate
or drop-in does.
"""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from gpuaas_agent import files
from gpuaas_agent.errors import SshdRefused
from gpuaas_agent.places import Places
from gpuaas_agent.revoked import revocation_list
from gpuaas_agent.trust import Trust, drop_in

SSHD = "/usr/sbin/sshd"
Run = Callable[[Sequence[str]], tuple[int, str]]


def run(argv: Sequence[str]) -> tuple[int, str]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    return done.returncode, f"{done.stderr}{done.stdout}".strip()


class Sshd:
    """The host's sshd. `run` is replaced in tests."""

    def __init__(self, places: Places, run: Run = run) -> None:
        self.places, self.run = places, run

    def apply(self, trust: Trust) -> bool:
        """Apply the trust. Returns True if a file changed, otherwise False. Raises SshdRefused if sshd rejects a file;
        all files are then restored."""
        wanted = trust.files(self.places) | {self.places.sshd_drop_in: drop_in(self.places)}
        gone = [path for path in self._principal_files() if path not in wanted]
        if not gone and all(files.read(path) == data for path, data in wanted.items()):
            return False
        self._rehearse(trust)
        before = {path: files.read(path) for path in [*wanted, *gone]}
        try:
            self._write(wanted, gone)
        except (SshdRefused, OSError):
            self._restore(before)
            raise
        return True

    def port(self) -> int:
        _, text = self.run([SSHD, "-T"])
        found = re.search(r"^port (\d+)$", text, re.M)
        return int(found.group(1)) if found else 22

    def _write(self, wanted: dict[Path, bytes], gone: list[Path]) -> None:
        for path in gone:
            files.remove(path)
        changed = {path for path, data in wanted.items() if files.write_if_changed(path, data)}
        if changed & {self.places.sshd_drop_in, self.places.ssh / "host-cert.pub"}:
            self._test([SSHD, "-t"])
            self._reload()

    def _rehearse(self, trust: Trust) -> None:
        """Let sshd validate the new files in a separate folder before any file in use is changed. Raises SshdRefused if
        a file is invalid. A power cut at this point leaves no invalid file in use."""
        stage = self.places.state / "candidate"
        shutil.rmtree(stage, ignore_errors=True)
        files.write(stage / "host-cert.pub", trust.host_certificate)
        files.write(stage / "user_ca.pub", trust.user_ca)
        files.write(stage / "revoked.krl", revocation_list(trust.revoked))
        main = self.places.root / "etc/ssh/sshd_config"
        files.write(stage / "sshd_config", drop_in(self.places, stage) + f"Include {main}\n".encode())
        try:
            self._test([SSHD, "-t", "-f", str(stage / "sshd_config")])
            self._test(["ssh-keygen", "-Q", "-l", "-f", str(stage / "revoked.krl")])  # sshd -t does not read it
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def _test(self, argv: Sequence[str]) -> None:
        code, text = self.run(argv)
        if code != 0:
            raise SshdRefused(text[-500:])

    def _reload(self) -> None:
        self._test(["systemctl", "try-reload-or-restart", "ssh.service"])

    def _restore(self, before: dict[Path, bytes | None]) -> None:
        for path, data in reversed(before.items()):  # the drop-in first: it must not name a file that is gone
            files.remove(path) if data is None else files.write(path, data)
        with suppress(SshdRefused):
            self._reload()

    def _principal_files(self) -> list[Path]:
        folder = self.places.ssh / "principals"
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []


def speaks(port: int, patience: float = 5) -> bool:
    """Return True if an SSH server responds on this port of the host within `patience` seconds, otherwise False. Used
    by `gpuaas-agent status`."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            if connection.recv(4) == b"SSH-":
                return True
        time.sleep(0.1)
    return False
