"""The tool with which crash tests kill a process: the test and the process change one file at the same time."""

import os
from pathlib import Path

from core.tests.support.killed_processes import Deaths

PASSED = 2_000


def test_a_process_that_passes_points_while_the_test_sets_them_ends_only_by_a_kill(tmp_path: Path) -> None:
    deaths, done = Deaths(tmp_path / "kill"), tmp_path / "done"
    child = os.fork()
    if child == 0:
        try:
            for _ in range(PASSED):
                deaths.point()
            done.touch()
        finally:
            os._exit(0 if done.exists() else 1)
    ended, status = 0, 0
    while not ended:
        deaths.after(10 * PASSED)
        deaths.outlived()
        ended, status = os.waitpid(child, os.WNOHANG)
    assert status == 0
    assert not deaths.file.exists(), "a point wrote back what the test had removed"
