"""Waiting for what another process or thread will do. A test that reads once meets a busy machine and fails by chance."""

import time
from collections.abc import Callable
from typing import Any


def soon(holds: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, f"not within a minute: {what}"
        time.sleep(0.02)
