"""Places where tests hold this process: a file `<step>.<moment>` in GPUAAS_SLURM_FAILPOINT_DIR means "wait here until
the file is gone", so that a test can kill somebody else at this moment. Without the variable nothing happens."""

import asyncio
import os
from pathlib import Path

VARIABLE = "GPUAAS_SLURM_FAILPOINT_DIR"
LONGEST_STAY_S = 60


async def reach(step: str, moment: str) -> None:
    where = os.environ.get(VARIABLE)
    if not where:
        return
    mark = Path(where) / f"{step}.{moment}"
    if not mark.exists():
        return
    mark.write_text("here")
    for _ in range(LONGEST_STAY_S * 20):
        if not mark.exists():
            return
        await asyncio.sleep(0.05)
