"""A process that is killed at a chosen point and lives again, until its parent ends it."""

import contextlib
import fcntl
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path


class Deaths:
    """A file says how many points are left to pass before the process is killed; without it, it lives. The test and the
    process both change it, so each holds a lock of the file system meanwhile: otherwise one reads what the other has
    only begun to write, or writes back what the other has just removed."""

    def __init__(self, file: Path) -> None:
        self.file, self.lock = file, threading.Lock()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with self.lock, self.file.with_suffix(".lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def point(self) -> None:
        if not self.file.exists():
            return
        with self._alone(), contextlib.suppress(FileNotFoundError):
            left = int(self.file.read_text())
            if left == 0:
                self.file.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            self.file.write_text(str(left - 1))

    def after(self, points: int) -> None:
        with self._alone():
            self.file.write_text(str(points))

    def outlived(self) -> bool:
        """The process was not killed: there are fewer points than that."""
        with self._alone():
            waiting = self.file.exists()
            self.file.unlink(missing_ok=True)
            return waiting


def live_again_and_again(life: Callable[[], None]) -> None:
    while True:
        child = os.fork()
        if child == 0:
            try:
                life()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        signal.signal(signal.SIGTERM, lambda *_, child=child: (os.kill(child, signal.SIGKILL), os._exit(0)))
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"the process ended by itself with {status}"
