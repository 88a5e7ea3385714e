"""The line for a machine: what runs there is what the platform announced, and the token is out of sight."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
from gpuaas_cli import enrol_command
from gpuaas_sdk import models as m

TOKEN = "enr_1.secret"
INSTALLER = b"import sys\nprint(sys.argv[1:], sys.stdin.readline().strip())\n"


def the_line(folder: Path, served: bytes) -> str:
    (folder / "install.py").write_bytes(served)
    invited = m.EnrolmentView(id="enr_1", node_name="box", token=TOKEN, expires_in=600)
    digest = hashlib.sha256(INSTALLER).hexdigest()
    agent = m.AgentView(version="1", path="/", sha256="", size=1, installer_path="/install.py", installer_sha256=digest)
    return enrol_command.line(folder.as_uri(), invited, agent).replace("python3", sys.executable, 1)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_line_runs_the_announced_installer_with_the_token_on_its_input(tmp_path: Path, shell: str) -> None:
    done = subprocess.run([shell, "-c", the_line(tmp_path, INSTALLER)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == f"['{tmp_path.as_uri()}', 'box'] {TOKEN}"


def test_anything_else_is_not_run(tmp_path: Path) -> None:
    line = the_line(tmp_path, INSTALLER + b"print('changed on the way')\n")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "not the announced installer" in done.stderr


def test_the_token_is_no_argument_of_a_program(tmp_path: Path) -> None:
    before, after = the_line(tmp_path, INSTALLER).split(" | ", 1)
    assert before == f"echo {TOKEN}", "echo is part of the shell: no process, nothing in `ps`"
    assert TOKEN not in after
