"""Runs the command of one stage and writes down the CPU seconds of everything that came of it.

The processes a stage leaves in the background (hosts of a lab, a supervisor's services) come back to this one when their
parent ends, because it is their subreaper; it waits for them, so that the kernel adds what they used. `--behind` lets the
command have only what others leave of the cores.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
BEHIND = 10  # nice: a tenth of the weight, so that it never stands still
LATE = 124
LAST_ENDS_S = 30  # what was told to stop is given so long before it is counted without its last seconds


def main(seconds: float, report: Path, behind: bool, argv: list[str]) -> int:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the command, too
    if behind:
        _stand_back()
    child = subprocess.Popen(argv, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    late: list[bool] = []

    def stop(number: int, _: object) -> None:
        late.append(number == signal.SIGALRM)
        os.kill(child.pid, signal.SIGKILL if late[1:] else signal.SIGINT)
        signal.alarm(60)

    signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.alarm(max(1, int(seconds)))
    code = _wait_for(child.pid)
    signal.alarm(0)
    _wait_for_the_rest()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    report.write_text(f"{used.ru_utime + used.ru_stime:.2f}")
    return LATE if any(late) else code


def _stand_back() -> None:
    """Also where the kernel shares between sessions first, and only then between processes."""
    os.nice(BEHIND)
    with contextlib.suppress(OSError):
        os.setsid()
        Path("/proc/self/autogroup").write_text(str(BEHIND))


def _wait_for(child: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == child:
            return abs(os.waitstatus_to_exitcode(status))


def _wait_for_the_rest() -> None:
    deadline = time.monotonic() + LAST_ENDS_S
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)


if __name__ == "__main__":
    _seconds, _report, _behind, *_argv = sys.argv[1:]
    sys.exit(main(float(_seconds), Path(_report), _behind == "--behind", _argv))
