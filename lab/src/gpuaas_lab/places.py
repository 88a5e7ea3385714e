"""The lab's folders outside the repository; two environment variables move them."""

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder of the images: large, slow to build, safe to delete."""
    return Path(os.environ.get("GPUAAS_LAB_CACHE", "/var/cache/gpuaas-lab"))


def state_root() -> Path:
    """Return the folder of the current state: one folder per lab, deleted by `down`."""
    return Path(os.environ.get("GPUAAS_LAB_STATE", "/var/lib/gpuaas-lab"))


def lab_name() -> str:
    return os.environ.get("GPUAAS_LAB_NAME", "default")
