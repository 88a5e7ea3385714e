"""Upgrades the agent: the current version runs the new version on trial, and keeps it only if it reports to the
platform.

    /opt/gpuaas-agent/releases/VERSION-DIGEST/gpuaas_agent    complete versions, side by side
    /opt/gpuaas-agent/current -> releases/VERSION-DIGEST      the version to start; switched by one rename
    /opt/gpuaas-agent/trial.json                              a version to be tried
    /opt/gpuaas-agent/outcome.json                            the result of the last trial

`stage` stores a version. At the next start the current version runs it as its child (`try_candidate`). Once a heartbeat
of the child was accepted, `current` is switched and the new version continues alone; otherwise the child is ended and
the current version continues. A power failure at any point is safe: `current` always names a version that works. Called
by `gpuaas-agent upgrade` and by the platform's task. Every version must support the command `run` and PROOF.
"""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from gpuaas_agent import files
from gpuaas_agent.errors import UpgradeRefused
from gpuaas_agent.places import Places

PROOF = "GPUAAS_AGENT_PROOF"  # in a candidate's environment: the file to write once a heartbeat was accepted
PATIENCE_S = 60
STOP_S = 5
MOST_TRIES = 3  # of one candidate, if the host itself dies while it is tried
LARGEST = 64 << 20
PYTHON = "/usr/bin/python3"


def stage(places: Places, archive: bytes, sha256: str, asked_by: str = "") -> str:
    """Store a new release for its trial at the next start, and return the name of the release. Raises UpgradeRefused if
    the archive is invalid or its release already runs."""
    if not places.current.is_symlink():
        raise UpgradeRefused("This agent was not installed with the platform's installer, so it has no releases.")
    if len(archive) > LARGEST or hashlib.sha256(archive).hexdigest() != sha256:
        raise UpgradeRefused("The digest of the archive does not match.")
    unfinished = places.releases / f".{sha256[:12]}.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _unpack(archive, unfinished)
        release = release_of(_version(unfinished), sha256)
        if release == _current(places):
            raise UpgradeRefused(f"{release} is already running.")
        if not (places.releases / release).exists():
            unfinished.rename(places.releases / release)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    files.remove(places.outcome)
    _write(places.trial, {"release": release, "tries": 0, "asked_by": asked_by})
    return release


def release_of(version: str, sha256: str) -> str:
    return f"{version}-{sha256[:12]}"


def running(places: Places) -> str | None:
    """Return the name of the running release; None if the agent was not installed with the platform's installer."""
    return _current(places) if places.current.is_symlink() else None


def pending(places: Places) -> bool:
    """Return True if a stored release waits for its trial, otherwise False. In a candidate (a release on trial) it is
    always False."""
    return PROOF not in os.environ and places.trial.exists()


def try_candidate(places: Places, patience_s: float = PATIENCE_S) -> bool:
    """Run the stored release on trial. Returns True if it reported to the platform and is now `current`, otherwise
    False."""
    trial = json.loads(files.read(places.trial) or b"{}")
    release, tries = str(trial.get("release", "")), int(trial.get("tries", 0))
    if tries >= MOST_TRIES or not (places.releases / release / "gpuaas_agent").is_dir():
        return _ended(places, trial, f"it was tried {tries} times without success")
    _write(places.trial, trial | {"tries": tries + 1})
    why = _heard(places, places.releases / release, patience_s)
    if why:
        return _ended(places, trial, why)
    former = _current(places)
    _point(places.current, Path("releases") / release)
    _ended(places, trial, "")
    _tidy(places, {release, former})
    return True


def go_on(places: Places) -> None:
    """Replace this process by the release that `current` names."""
    os.execve(PYTHON, [PYTHON, "-m", "gpuaas_agent", "run"], _environment(places.current))  # noqa: S606 - no shell


def heard(places: Places) -> None:
    """Record that the platform accepted a heartbeat. Only the first call in a candidate has an effect."""
    proof = os.environ.get(PROOF)
    if proof and not Path(proof).exists():
        files.write(Path(proof), "heard\n")


def outcome(places: Places) -> dict[str, Any] | None:
    text = files.read(places.outcome)
    return json.loads(text) if text else None


def _heard(places: Places, home: Path, patience_s: float) -> str:
    """Run the candidate until the platform accepts its heartbeat or the time is over, then stop it. Returns why the
    candidate is rejected; empty if it is accepted."""
    proof = places.state / "proof"
    files.remove(proof)
    child = subprocess.Popen([PYTHON, "-m", "gpuaas_agent", "run"], env=_environment(home) | {PROOF: str(proof)})
    try:
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            if proof.exists():
                return ""
            if child.poll() is not None:
                return f"it ended with {child.returncode} before it reported to the platform"
            time.sleep(0.1)
        return f"it did not report to the platform within {patience_s:g} s"
    finally:
        _stop(child)
        files.remove(proof)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _ended(places: Places, trial: dict[str, Any], why: str) -> bool:
    result = {"release": trial.get("release", ""), "asked_by": trial.get("asked_by", "")}
    _write(places.outcome, result | {"taken": not why, "why": why})
    files.remove(places.trial)
    return not why


def _unpack(archive: bytes, into: Path) -> None:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.isfile() else None
                if content is None or not re.fullmatch(r"gpuaas_agent/[\w./-]+", entry.name) or ".." in entry.name:
                    raise UpgradeRefused(f"The archive holds {entry.name[:80]!r}, which is not a file of the agent.")
                files.write(into / entry.name, content.read())
    except tarfile.TarError as error:
        raise UpgradeRefused(f"The archive cannot be read: {error}.") from error


def _version(home: Path) -> str:
    text = files.read(home / "gpuaas_agent/__init__.py") or b""
    match = re.search(rb'^__version__ = "([\w.+-]{1,40})"$', text, re.M)
    if match is None:
        raise UpgradeRefused("The archive has no agent version.")
    return match.group(1).decode()


def _current(places: Places) -> str:
    return os.readlink(places.current).rsplit("/", 1)[-1]


def _point(link: Path, to: Path) -> None:
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(to)
    files.move(fresh, link)


def _tidy(places: Places, kept: set[str]) -> None:
    for path in places.releases.iterdir():
        if path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def _write(path: Path, value: dict[str, Any]) -> None:
    files.write(path, json.dumps(value))


def _environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != PROOF}
    return kept | {"PYTHONPATH": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
