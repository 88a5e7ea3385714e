"""An HSM in software (SoftHSM), for the tests of custody."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

SOFTHSM = "/usr/lib/softhsm/libsofthsm2.so"


def hsm(folder: Path) -> dict[str, str]:
    """A master key of its own in the one token of this process: SoftHSM looks for tokens once, when it is loaded."""
    pin = folder / "pin"
    pin.write_text("4711\n")
    return {
        "GPUAAS_CORE_CUSTODY": "pkcs11",
        "GPUAAS_CORE_PKCS11_MODULE": SOFTHSM,
        "GPUAAS_CORE_PKCS11_TOKEN": _token(),
        "GPUAAS_CORE_PKCS11_PIN_FILE": str(pin),
        "GPUAAS_CORE_PKCS11_LABEL": f"key-{time.monotonic_ns()}",
    }


@functools.cache
def _token() -> str:
    folder = Path(tempfile.mkdtemp(prefix="softhsm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["SOFTHSM2_CONF"] = str(_softhsm_config(folder))
    command = ["softhsm2-util", "--init-token", "--free", "--label", "tests", "--pin", "4711", "--so-pin", "0815"]
    subprocess.run(command, check=True, capture_output=True, timeout=20)
    return "tests"


def _softhsm_config(folder: Path) -> Path:
    (folder / "tokens").mkdir()
    config = folder / "softhsm2.conf"
    config.write_text(f"directories.tokendir = {folder}/tokens\nobjectstore.backend = file\nlog.level = ERROR\n")
    return config
