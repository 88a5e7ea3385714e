"""The only module that starts programs: always with a time limit, and with the output kept for the error.

While a lab is locked, children inherit the lock's file descriptor (see `state.lock`). If this process is killed, the
lock stays held until its last child ends, so the next `down` never races with an `ip link add` still in flight.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from gpuaas_lab.errors import CommandFailed, ExecTimeout

inherited: set[int] = set()

CLEAN_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Result:
    """The result of a program."""

    exit: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        return self.stderr.decode(errors="replace")


def run(
    argv: Sequence[str],
    *,
    timeout: float = 30,
    input: bytes | None = None,
    check: bool = True,
    env: dict[str, str] | None = None,
    keep_lock: bool = True,
) -> Result:
    """Run a program to its end. At the time limit the whole process group is killed, including forked processes."""
    child = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **CLEAN_ENV} if env is None else env,
        pass_fds=tuple(inherited) if keep_lock else (),
        start_new_session=True,
    )
    try:
        stdout, stderr = child.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill_group(child)
        raise ExecTimeout(" ".join(argv), timeout) from None
    except BaseException:
        _kill_group(child)
        raise
    result = Result(child.returncode, stdout, stderr)
    if check and result.exit != 0:
        raise CommandFailed(" ".join(argv), result.exit, result.error_text or result.text)
    return result


def succeeds(argv: Sequence[str], *, timeout: float = 30) -> bool:
    return run(argv, timeout=timeout, check=False).exit == 0


def _kill_group(child: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        child.wait(timeout=10)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()
