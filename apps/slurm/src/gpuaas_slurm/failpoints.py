"""Places where tests stop this process: a file `<step>.<moment>` in GPUAAS_SLURM_FAILPOINT_DIR means "die here, once".

A file that says `stay` means "wait here until the file is gone", so that a test can kill somebody else at this moment.
Without the variable nothing happens. The file is removed before dying, so that the next process passes.
"""

import asyncio
import os
import signal
from pathlib import Path

MOMENTS = ("before_act", "after_act", "after_record")
VARIABLE = "GPUAAS_SLURM_FAILPOINT_DIR"
LONGEST_STAY_S = 60


async def reach(step: str, moment: str) -> None:
    where = os.environ.get(VARIABLE)
    if not where:
        return
    mark = Path(where) / f"{step}.{moment}"
    if not mark.exists():
        return
    if mark.read_text() == "stay":
        await _stay(mark)
        return
    mark.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


async def _stay(mark: Path) -> None:
    mark.write_text("here")  # noqa: ASYNC240 - only tests come here
    for _ in range(LONGEST_STAY_S * 20):
        if not mark.exists():  # noqa: ASYNC240
            return
        await asyncio.sleep(0.05)
