"""Getting onto a machine with the ssh of this computer: a key for this one connection, and nothing taken on trust.

The key is made by ssh-keygen in a folder that only its owner can open, and goes with the folder when the connection
ends; the platform sees its public half. The machine has to show a certificate for its own id, by an authority that the
platform named in its answer: an address that moved to another machine is noticed. Called by commands/ssh.py.
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

REFUSED = 255  # ssh's own word for "I did not get in"
# What is said here goes before what a person's own ssh settings say; a way to get there (ProxyJump) is still theirs.
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
    """Before anything is asked for."""
    for name in ("ssh", "ssh-keygen"):
        if shutil.which(name) is None:
            way_out = "Install OpenSSH's client (Debian: apt-get install openssh-client) and run it again."
            raise CliError(f"The program {name} is not on this computer.", way_out, failures.USAGE)


@contextmanager
def private_folder(*, kept: bool) -> Iterator[Path]:
    """`kept`: it is left to whoever asked for it, unless something goes wrong before they know of it."""
    folder = Path(tempfile.mkdtemp(prefix="gpuaas-ssh-"))  # mode 0700
    done = False
    try:
        yield folder
        done = True
    finally:
        if not (kept and done):
            shutil.rmtree(folder, ignore_errors=True)


def new_key(folder: Path) -> str:
    """The public half; the private one never comes into this program."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpuaas", "-f", str(folder / "key")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CliError(f"ssh-keygen made no key: {done.stderr.strip()}", "Is there room in TMPDIR?", failures.BUG)
    return (folder / "key.pub").read_text().strip()


def command(folder: Path, to: SshSessionView, words: Sequence[str], *, tty: bool) -> list[str]:
    """The words to run; what they name is written into the folder."""
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
    """ssh's exit code. Signals are ssh's to answer: this program only waits, to tidy up after it."""
    process = subprocess.Popen(words)
    passed_on = {
        number: signal.signal(number, lambda got, _: process.send_signal(got))
        for number in (signal.SIGTERM, signal.SIGHUP)
    }
    own = signal.signal(signal.SIGINT, lambda *_: None)  # the terminal tells ssh by itself
    try:
        code = process.wait()
    finally:
        for number, former in {**passed_on, signal.SIGINT: own}.items():
            signal.signal(number, former)
    return 128 - code if code < 0 else code
