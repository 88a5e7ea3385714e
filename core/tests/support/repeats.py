"""How often a test repeats itself. `make test` shows each promise once; `make soak` sets GPUAAS_SOAK and repeats it."""

import os


def times(*, usual: int, soak: int) -> int:
    return soak if os.environ.get("GPUAAS_SOAK") else usual
