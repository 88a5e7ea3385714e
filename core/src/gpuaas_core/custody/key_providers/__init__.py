"""Holders of the master key: a key file, an OpenBao or Vault server, or an HSM. All implement `port.Holder`.

A holder only wraps and unwraps data keys, so a master key in a server or an HSM never leaves it.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from .embedded import Embedded
from .openbao import OpenBao
from .pkcs11 import Pkcs11
from .port import Holder

OPENERS: dict[str, Callable[[Mapping[str, str], Path], Holder]] = {
    "embedded": Embedded.configured,
    "openbao": OpenBao.configured,
    "pkcs11": Pkcs11.configured,
}


def open_holder(kind: str, environment: Mapping[str, str], data_dir: Path) -> Holder:
    if kind not in OPENERS:
        raise RuntimeError(f"GPUAAS_CORE_CUSTODY is {kind!r}; it must be one of " + ", ".join(OPENERS))
    return OPENERS[kind](environment, data_dir)
