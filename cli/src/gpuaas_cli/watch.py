"""`--watch`: repeats a read command. Called by main for every command with the option.

On a terminal, changed output replaces the previous output; in a pipe it is printed below it. While the platform does
not respond, the command is retried.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from typing import TextIO

from . import failures

CLEAR = "\033[H\033[2J\033[3J"


class _Page(io.StringIO):
    """Captures the output of one run. `isatty` returns that of the real stdout, so that colours are kept."""

    def __init__(self, real: TextIO) -> None:
        super().__init__()
        self._terminal = real.isatty()

    def isatty(self) -> bool:
        return self._terminal


def watch(command: Callable[[], int | None], every_s: float, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Repeat the command until Ctrl-C, and return the exit code for an interruption. An error that a retry cannot fix
    is raised."""
    from gpuaas_sdk.client.errors import ConnectionFailed, Unavailable

    out, shown = sys.stdout, None
    try:
        while True:
            page = _Page(out)
            try:
                with contextlib.redirect_stdout(page):
                    command()
                shown = _turn(out, page.getvalue(), shown)
            except (ConnectionFailed, Unavailable) as error:
                print(f"({error} Retrying.)", file=sys.stderr)
            sleep(max(0.2, every_s))
    except KeyboardInterrupt:
        return failures.INTERRUPTED


def _turn(out: TextIO, page: str, shown: str | None) -> str:
    if page != shown:
        out.write(CLEAR + page if out.isatty() else page)
        out.flush()
    return page
