"""Failpoints, where tests pause or kill this process: a file `<step>.<moment>` in the folder GPUAAS_FAILPOINT_DIR.

A file with the content `die` kills the process there, once. Any other content pauses it there until the file is
deleted, so that a test can change the host at this moment. Without the variable nothing happens.
"""

import asyncio
import os
import signal
from pathlib import Path

VARIABLE = "GPUAAS_FAILPOINT_DIR"
LONGEST_STAY_S = 300
MOMENTS = ("before_act", "after_act")


def marked(step: str) -> bool:
    where = os.environ.get(VARIABLE)
    return bool(where) and any((Path(where) / f"{step}.{moment}").exists() for moment in MOMENTS)


async def reach(step: str, moment: str) -> None:
    where = os.environ.get(VARIABLE)
    if not where:
        return
    mark = Path(where) / f"{step}.{moment}"
    if not mark.exists():
        return
    if mark.read_text() == "die":
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    mark.write_text("here")
    for _ in range(LONGEST_STAY_S * 20):
        if not mark.exists():
            return
        await asyncio.sleep(0.05)
