"""The agent as the platform gives it to hosts: always the same bytes, and an installer that accepts nothing else."""

import hashlib
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from gpuaas_agent import installer
from gpuaas_core.node_tasks import agent_package

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import World

pytestmark = pytest.mark.any_store


async def test_archive_and_installer_are_what_their_digests_say(world: World) -> None:
    anonymous = world.api.as_(None)
    said = (await anonymous.get("/v1/agent")).json()
    for path in (said["path"], "/v1/agent/current"):
        archive = await anonymous.get(path)
        assert hashlib.sha256(archive.content).hexdigest() == said["sha256"] == archive.headers["x-sha256"]
        assert len(archive.content) == said["size"]
    installer = await anonymous.get(said["installer_path"])
    assert hashlib.sha256(installer.content).hexdigest() == said["installer_sha256"]
    assert said["sha256"] in installer.text
    assert "@SHA256@" not in installer.text
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as tar:
        names = tar.getnames()
    assert {"gpuaas_agent/__main__.py", "gpuaas_agent/gpuaas-agent.service"} <= set(names)
    check_problem(await anonymous.get("/v1/agent/9.9.9"), 404, "not_found")


def test_the_same_files_are_the_same_archive_whenever_and_wherever_they_lie(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for number, folder in enumerate(folders):
        for name in ("z.py", "inner/a.py", "__pycache__/a.pyc") if number else ("inner/a.py", "z.py"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            path.chmod(0o600 if number else 0o755)
    assert agent_package.pack(folders[0]) == agent_package.pack(folders[1])


def test_another_archive_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "archive").write_bytes(b"something else")
    monkeypatch.setattr(installer, "SHA256", "0" * 64)
    with pytest.raises(SystemExit):
        installer.fetch((tmp_path / "archive").as_uri())
    assert "does not match. Nothing was installed" in capsys.readouterr().err


def test_an_archive_with_more_than_files_of_the_agent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installer, "HOME", tmp_path / "home")
    for name, kind in (("../escape", tarfile.REGTYPE), ("gpuaas_agent/link", tarfile.SYMTYPE)):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/shadow"
            tar.addfile(entry)
        with pytest.raises(SystemExit):
            installer.unpack(buffer.getvalue())
    assert not (tmp_path / "home/current").exists()


def test_a_host_without_the_needed_packages_is_told_their_names(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(installer, "NEEDED", {"python3-cryptography": "no_such_module_here"})
    monkeypatch.setattr(installer.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1))
    with pytest.raises(SystemExit):
        installer.bring_packages()
    assert "lacks python3-cryptography" in capsys.readouterr().err


def test_without_a_token_on_standard_input_nothing_happens(tmp_path: Path) -> None:
    script = tmp_path / "install.py"
    script.write_bytes(agent_package.package().installer)
    done = subprocess.run(
        [sys.executable, script, "http://127.0.0.1:9", "name"], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "error: " in done.stderr
