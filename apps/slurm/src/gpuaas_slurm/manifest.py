"""Loads the manifest, which the platform's catalog shows and validates. Used by `publish`, the CLI and the tests."""

import json
from importlib import resources
from typing import Any

from gpuaas_slurm import __version__


def load() -> dict[str, Any]:
    text = resources.files("gpuaas_slurm").joinpath("manifest.json").read_text()
    manifest = json.loads(text)
    if manifest["version"] != __version__:
        raise RuntimeError(f"manifest.json says {manifest['version']}, the package is {__version__}")
    return manifest
