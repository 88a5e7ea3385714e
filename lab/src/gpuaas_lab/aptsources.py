"""Finds the Debian sources of this machine, so that the image is built from the same ones.

Both apt formats are read (one line, and deb822). This repository names no mirror; GPUAAS_LAB_MIRROR and
GPUAAS_LAB_SUITE override what is found.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuaas_lab.errors import NoAptSource

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Source:
    """One apt source, with the fields that debootstrap and a one-line sources.list need."""

    uri: str
    suite: str
    components: tuple[str, ...]
    keyring: str = KEYRING

    @property
    def line(self) -> str:
        return f"deb [signed-by={self.keyring}] {self.uri} {self.suite} {' '.join(self.components)}"


def release_name(os_release: Path = Path("/etc/os-release")) -> str:
    """Return the release for the image: GPUAAS_LAB_SUITE, else this machine's own codename, else bookworm."""
    if suite := os.environ.get("GPUAAS_LAB_SUITE"):
        return suite
    found = re.search(r"^VERSION_CODENAME=\"?(\w+)", os_release.read_text() if os_release.exists() else "", re.M)
    return found.group(1) if found else "bookworm"


def find(codename: str, apt: Path = Path("/etc/apt")) -> list[Source]:
    """Return the apt sources: the main archive first, then its updates and security suites."""
    if mirror := os.environ.get("GPUAAS_LAB_MIRROR"):
        return [Source(mirror, codename, ("main",))]
    wanted = (codename, f"{codename}-updates", f"{codename}-security")
    found = [source for source in _all(apt) if source.suite in wanted and "main" in source.components]
    found.sort(key=lambda source: wanted.index(source.suite))
    if not found or found[0].suite != codename:
        raise NoAptSource(codename)
    return found


def _all(apt: Path) -> Iterator[Source]:
    lists = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]
    for path in lists:
        if path.exists():
            yield from _one_line(path.read_text())
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        yield from _deb822(path.read_text())


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+?)\s*(?:#.*)?$", line)
        if match:
            signed = re.search(r"signed-by=(/\S+)", match.group(1) or "")
            yield Source(
                match.group(2), match.group(3), tuple(match.group(4).split()), _key(signed and signed.group(1))
            )


def _deb822(text: str) -> Iterator[Source]:
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for block in re.split(r"\n\s*\n", plain):
        fields = {name.lower(): value.split() for name, value in re.findall(r"^([\w-]+):[ \t]*(.*)$", block, re.M)}
        if "deb" not in fields.get("types", []) or fields.get("enabled") == ["no"]:
            continue
        key = _key((fields.get("signed-by") or [None])[0])
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield Source(uri, suite, tuple(fields.get("components", [])), key)


def _key(path: str | None) -> str:
    return path if path and path.startswith("/") and Path(path).exists() else KEYRING
