"""The agent as hosts get it: one archive, the same bytes wherever it is made from the same files, and its installer.

The installer has the archive's digest in it, and whoever prints the line for a host (`gpuaas node enrol`) has the
installer's: what runs on the host is what the platform said, whoever stands in between. Read by agent_routes.
"""

import functools
import hashlib
import importlib.util
import io
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from ..kit.problems import NotFound

PACKAGE = "gpuaas_agent"
CURRENT = "current"


@dataclass(frozen=True)
class AgentPackage:
    version: str
    archive: bytes
    sha256: str
    installer: bytes
    installer_sha256: str


def of_version(version: str) -> AgentPackage:
    found = package()
    if version not in (CURRENT, found.version):
        raise NotFound(
            f"This platform has the agent {found.version}, not {version[:40]!r}.", way_out="Ask for `current`."
        )
    return found


@functools.cache
def package() -> AgentPackage:
    """From where it is installed beside the core; files do not change under a running core."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NotFound(
            "The agent is not installed beside this core.", way_out="Install gpuaas-agent where the core runs."
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    archive = pack(folder)
    version = _version((folder / "__init__.py").read_text())
    sha256 = hashlib.sha256(archive).hexdigest()
    script = (folder / "installer.py").read_text()
    installer = script.replace("@VERSION@", version).replace("@SHA256@", sha256).encode()
    return AgentPackage(version, archive, sha256, installer, hashlib.sha256(installer).hexdigest())


def pack(folder: Path) -> bytes:
    """Names in order, owner root, no times: the digest says what is in it and nothing else."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                entry = tarfile.TarInfo(f"{PACKAGE}/{path.relative_to(folder).as_posix()}")
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _version(text: str) -> str:
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.M)
    if found is None:
        raise NotFound(
            "The agent beside this core names no version.", way_out="Install gpuaas-agent where the core runs."
        )
    return found.group(1)
