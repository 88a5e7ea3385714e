"""Runs ssh with a key and a certificate for one connection. Called by commands/ssh.py.

ssh-keygen creates the key in a private folder, which is deleted when the connection ends; the platform only sees the
public key. The host must present a certificate for its node id, signed by an authority from the platform's answer. This
detects an address that moved to another host.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import failures
from .failures import CliError

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import SshSessionView

REFUSED = 255  # ssh's exit code for a failed connection
# These options override the user's ssh settings; ProxyJump is not among them and still applies.
STRICT = {
    "StrictHostKeyChecking": "yes",
    "GlobalKnownHostsFile": "/dev/null",
    "KnownHostsCommand": "none",
    "UpdateHostKeys": "no",
    "HostKeyAlgorithms": "ssh-ed25519-cert-v01@openssh.com",
    "IdentitiesOnly": "yes",
    "IdentityAgent": "none",
    "PreferredAuthentications": "publickey",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ControlMaster": "no",
    "ControlPath": "none",
    "ConnectTimeout": "10",
    "ServerAliveInterval": "15",
}


def check_programs() -> None:
    """Raise CliError if ssh or ssh-keygen is not installed. Called before any request is sent."""
    for name in ("ssh", "ssh-keygen"):
        if shutil.which(name) is None:
            way_out = "Install OpenSSH's client (Debian: apt-get install openssh-client) and run it again."
            raise CliError(f"The program {name} is not installed.", way_out, failures.USAGE)


@contextmanager
def private_folder(*, kept: bool) -> Iterator[Path]:
    """Create a private temporary folder for the block. With `kept` the folder stays, unless an error occurs."""
    folder = Path(tempfile.mkdtemp(prefix="gpuaas-ssh-"))  # mode 0700
    done = False
    try:
        yield folder
        done = True
    finally:
        if not (kept and done):
            shutil.rmtree(folder, ignore_errors=True)


def new_key(folder: Path) -> str:
    """Create a key pair in the folder and return the public key; this program never reads the private key."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpuaas", "-f", str(folder / "key")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CliError(f"ssh-keygen failed: {done.stderr.strip()}", "Check that TMPDIR has free space.", failures.BUG)
    return (folder / "key.pub").read_text().strip()


def command(folder: Path, to: SshSessionView, words: Sequence[str], *, tty: bool) -> list[str]:
    """Return the ssh command line. The certificate and the known_hosts file that ssh uses are written into the
    folder."""
    (folder / "key-cert.pub").write_text(to.certificate + "\n")
    lines = [f"@cert-authority {to.host_principal} {line}\n" for line in to.host_ca_public_keys]
    (folder / "known_hosts").write_text("".join(lines))
    named = {
        "IdentityFile": folder / "key",
        "CertificateFile": folder / "key-cert.pub",
        "UserKnownHostsFile": folder / "known_hosts",
        "HostKeyAlias": to.host_principal,
    }
    options = [word for name, value in (named | STRICT).items() for word in ("-o", f"{name}={value}")]
    terminal = ["-t"] if tty else []
    return ["ssh", *options, *terminal, "-p", str(to.port), "-l", to.login_user, "--", to.address, *words]


def connect(words: list[str]) -> int:
    """Run ssh and return its exit code. Signals are passed on to ssh, so that this program outlives ssh and can clean
    up."""
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before ssh had started

    def pass_on(got: int, _frame: object) -> None:
        if process is None:
            early.append(got)
        else:
            process.send_signal(got)

    former = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    former[signal.SIGINT] = signal.signal(signal.SIGINT, lambda *_: None)  # the terminal sends it to ssh directly
    try:
        process = subprocess.Popen(words)
        for number in early:
            process.send_signal(number)
        code = process.wait()
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    return 128 - code if code < 0 else code
