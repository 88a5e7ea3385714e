"""Canaries: marker values used in place of secrets, and a search that finds them in any encoding."""

import base64
import contextlib
import gzip
import json
import secrets
import urllib.parse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

SHORTEST = 8  # less of a marker than this proves nothing


def forms(marker: bytes) -> dict[str, bytes]:
    """Return the marker in every encoding: base64 at each of its three offsets, in both alphabets, and others."""
    found = {"raw": marker, "hex": marker.hex().encode(), "HEX": marker.hex().upper().encode()}
    for shift in range(3):
        # Characters at the edges also encode bits of the neighbouring text, so leave them out.
        whole = base64.b64encode(b"\0" * shift + marker).rstrip(b"=")
        sure = whole[(8 * shift + 5) // 6 : (8 * (shift + len(marker))) // 6]
        found |= {f"base64 at {shift}": sure, f"base64url at {shift}": sure.replace(b"+", b"-").replace(b"/", b"_")}
    found |= {"url": urllib.parse.quote(marker, safe="").encode(), "form": urllib.parse.quote_plus(marker).encode()}
    with contextlib.suppress(UnicodeDecodeError):
        found["json"] = json.dumps(marker.decode())[1:-1].encode()
    return found


@dataclass
class Canaries:
    """Markers by name. A marker contains characters that URLs and JSON escape differently."""

    marks: dict[str, bytes] = field(default_factory=dict)

    def new(self, name: str, alphabet: str = "") -> str:
        mark = f'cnry/{name}+{secrets.token_hex(8)}~"é' if not alphabet else secrets.token_hex(16)
        return self.watch(name, mark)

    def watch(self, name: str, value: str | bytes) -> str:
        """Also search for a secret that was created elsewhere: an issued token, the private half of a key."""
        raw = value.encode() if isinstance(value, str) else value
        assert len(raw) >= SHORTEST, f"{name} is too short to search for"
        self.marks[name] = raw
        return value if isinstance(value, str) else ""

    def hits(self, places: Iterable[tuple[str, bytes]], *, but: Iterable[str] = ()) -> list[str]:
        """Return where markers were found. `but` names the secrets that are allowed there."""
        looked = [(name, form, sought) for name, mark in self.marks.items() for form, sought in forms(mark).items()]
        left = [one for one in looked if one[0] not in set(but)]
        return [
            f"{name} ({form}) in {place}"
            for place, content in places
            for name, form, sought in left
            if sought in content
        ]


def under(folder: Path, *, but: Iterable[str] = ()) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.name not in set(but):
            content = file.read_bytes()
            yield str(file.relative_to(folder)), gzip.decompress(content) if file.suffix == ".gz" else content


def process(pid: int) -> Iterator[tuple[str, bytes]]:
    """Yield the command line of a process, which any user can read, and its environment, which root can read."""
    for name in ("cmdline", "environ"):
        yield f"{name} of {pid}", Path(f"/proc/{pid}/{name}").read_bytes()
