"""The agent package that hosts download: a reproducible archive and its installer.

The installer contains the digest of the archive, and the printed enrolment command (`gpuaas node enrol`) contains the
digest of the installer. The host therefore runs exactly what the platform ships, even if a proxy between them changes
the download. Read by agent_routes.
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
    packaged = package()
    if version not in (CURRENT, packaged.version):
        raise NotFound(
            f"This platform ships agent {packaged.version}, not {version[:40]!r}.", way_out="Request `current`."
        )
    return packaged


@functools.cache
def package() -> AgentPackage:
    """Build the agent package from the agent installed beside the core; raise 404 if none is installed. The result is
    cached, since the files do not change while the core runs."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NotFound(
            "The agent package is not installed beside this core.", way_out="Install gpuaas-agent where the core runs."
        )
    folder = Path(next(iter(spec.submodule_search_locations)))
    archive = pack(folder)
    version = _version((folder / "__init__.py").read_text())
    sha256 = hashlib.sha256(archive).hexdigest()
    script = (folder / "installer.py").read_text()
    installer = script.replace("@VERSION@", version).replace("@SHA256@", sha256).encode()
    return AgentPackage(version, archive, sha256, installer, hashlib.sha256(installer).hexdigest())


def pack(folder: Path) -> bytes:
    """Build a reproducible archive of the folder: sorted names, owner root, no timestamps. Its digest depends only on
    the files."""
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
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.M)
    if match is None:
        raise NotFound(
            "The agent package beside this core has no version.", way_out="Install gpuaas-agent where the core runs."
        )
    return match.group(1)
