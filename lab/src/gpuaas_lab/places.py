"""Where the lab keeps things outside the repository; two environment variables move them."""

import os
from pathlib import Path


def cache_root() -> Path:
    """Images: large, slow to make, safe to delete."""
    return Path(os.environ.get("GPUAAS_LAB_CACHE", "/var/cache/gpuaas-lab"))


def state_root() -> Path:
    """What exists right now: one folder per lab, gone after `down`."""
    return Path(os.environ.get("GPUAAS_LAB_STATE", "/var/lib/gpuaas-lab"))


def lab_name() -> str:
    return os.environ.get("GPUAAS_LAB_NAME", "default")
