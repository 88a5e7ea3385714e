"""Builds the package set: one tar file with every .deb that a bare Debian host needs to join a cluster.

The local apt downloads the packages from its own sources, resolved as if nothing were installed. So the set is
complete, and the host's apt installs only what is missing there. Equal packages give equal bytes, so the digest of the
file pins all of them.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuaas_slurm.facts import PROGRAMS

# What the programs of a cluster come in, and the plugins without which its daemons do not start.
WANTED = tuple(sorted({*PROGRAMS.values(), "slurm-wlm-basic-plugins"}))
INDEX, NOTE = "Packages", "set.json"
FORMAT = 1
FETCH_S = 1200


class BuildFailed(Exception):
    """apt or dpkg failed; the message ends with the last line of their output."""


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    architecture: str
    sha256: str
    size: int
    control: str
    path: Path

    @property
    def filename(self) -> str:
        return f"debs/{self.name}_{self.version.replace(':', '%3a')}_{self.architecture}.deb"

    @property
    def stanza(self) -> str:
        """Return the package's entry in the index that apt reads on the host."""
        return f"{self.control.strip()}\nFilename: {self.filename}\nSize: {self.size}\nSHA256: {self.sha256}\n"


@dataclass(frozen=True)
class Built:
    file: Path
    sha256: str
    size: int
    packages: int
    version: str  # of Slurm, which names the set


def build(file: Path, wanted: Sequence[str] = WANTED) -> Built:
    """Build the package set and write it to the file atomically. Returns the file's digest, size and package
    versions."""
    with tempfile.TemporaryDirectory(prefix="gpuaas-slurm-packages-") as folder:
        found = [_read(path) for path in _fetch(Path(folder), wanted)]
        packages = sorted(found, key=lambda one: (one.name, one.version))
        made = file.with_name(f".{file.name}.new")
        try:
            _write(made, packages, wanted)
            digest, size = _digest(made), made.stat().st_size
            made.replace(file)
        finally:
            made.unlink(missing_ok=True)
    versions = {one.name: one.version for one in packages}
    return Built(file, digest, size, len(packages), versions.get("slurmctld", packages[0].version))


def _fetch(work: Path, wanted: Sequence[str]) -> list[Path]:
    """Download the packages with all dependencies, as if no package were installed. apt uses separate lists and an
    empty status, so that the local packages are neither read nor changed."""
    for name in ("lists/partial", "archives/partial"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    settings = {
        "APT::Sandbox::User": "",
        "APT::Install-Recommends": "false",
        "Debug::NoLocking": "true",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache": work,
        "Dir::Cache::archives": work / "archives",
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    _run(["apt-get", *options, "-q", "update"])
    _run(["apt-get", *options, "-qy", "--download-only", "install", *wanted])
    return sorted((work / "archives").glob("*.deb"))


def _read(path: Path) -> Package:
    control = _run(["dpkg-deb", "--field", str(path)])
    fields = dict(line.split(": ", 1) for line in control.splitlines() if ": " in line and not line.startswith(" "))
    named = (fields["Package"], fields["Version"], fields["Architecture"])
    return Package(*named, _digest(path), path.stat().st_size, control, path)


def _write(file: Path, packages: Sequence[Package], wanted: Sequence[str]) -> None:
    note = {
        "format": FORMAT,
        "wanted": list(wanted),
        "architecture": next((p.architecture for p in packages if p.architecture != "all"), "all"),
        "packages": [{"name": p.name, "version": p.version, "sha256": p.sha256} for p in packages],
    }
    texts = {
        NOTE: json.dumps(note, indent=1, sort_keys=True) + "\n",
        INDEX: "\n".join(one.stanza for one in packages),
    }
    with tarfile.open(file, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text in texts.items():
            data = text.encode()
            tar.addfile(_entry(name, len(data)), io.BytesIO(data))
        for one in packages:
            with one.path.open("rb") as deb:
                tar.addfile(_entry(one.filename, one.size), deb)


def _entry(name: str, size: int) -> tarfile.TarInfo:
    """Return a tar entry without times and owners, so that the bytes depend only on the content."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(argv: Sequence[str]) -> str:
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=FETCH_S, env=env, check=False)
    except FileNotFoundError as error:
        raise BuildFailed(f"{argv[0]} is missing: a package set is built on a Debian machine.") from error
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()] or ["no output"]
        raise BuildFailed(f"{argv[0]} did not work: {words[-1][:300]}")
    return done.stdout
