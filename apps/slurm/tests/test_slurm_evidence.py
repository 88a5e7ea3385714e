"""The evidence of a failed operation: all that helps, nothing that is secret, never too much."""

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps import evidence
from gpuaas_sdk.host_steps.host import Claim, parse, preamble
from gpuaas_slurm.errors import FAILURES
from gpuaas_slurm.profile import PROFILE

MUNGE_KEY = base64.b64encode(bytes(range(1, 129))).decode()
CANARIES = {
    f"munge.key: {MUNGE_KEY}": MUNGE_KEY[:40],
    "StoragePass=hunter2hunter2": "hunter2hunter2",
    "password: swordfish": "swordfish",
    "GRANT ALL ON x TO y IDENTIFIED BY 'tr0ub4dor'": "tr0ub4dor",
    "Authorization: Bearer abc.def.ghi": "abc.def.ghi",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----": "b3BlbnNzaC1rZXkt",
    f"sha {'ab12' * 16}": "ab12ab12",
}


@pytest.mark.parametrize("line", CANARIES)
def test_a_secret_that_a_daemon_said_is_nowhere_in_the_evidence(line: str) -> None:
    output = "\n".join([line, *(f"@log {one}" for one in line.splitlines())])
    error = FAILURES.explain(
        parse(1, output), host="gpu1", step="join_key", title="Bringing the key", code="step_failed"
    )
    whole = json.dumps(evidence.bundle({**error.detail, "more": {"deep": [line]}}, [], {}))
    secret = CANARIES[line]
    if "\n" not in line:
        assert secret not in json.dumps(error.detail) + error.message
    assert secret not in json.dumps(evidence.bundle({"output": line, "more": {"deep": [line]}}, [], {}))
    assert "gpu1" in whole


def test_what_helps_is_not_blotted_out() -> None:
    for line in (
        "slurmd: fatal: Unable to determine this slurmd's NodeName",
        "/usr/lib/x86_64-linux-gnu/slurm-wlm/mpi_pmix_v4.so: cannot open shared object file",
        "op_01m7hpn8x3h282cfjc624tahp8 on inst_01m7hnvn42arha093v5nbshev3",
    ):
        assert evidence.scrub(line) == line


def test_the_bundle_is_bounded_however_much_was_said() -> None:
    row = {"step": "join", "allocation_id": "a", "attempt": 1, "phase": "failed", "started": 1.0, "finished": 2.5}
    huge = {
        "step": "join",
        "output": "x y " * 100_000,
        "log": ["a line " * 50] * 5_000,
        "checks": [{"sentence": "z " * 500}] * 500,
    }
    made = evidence.bundle(huge, [row] * 1_000, {"a": "gpu1"})
    assert len(json.dumps(made)) <= evidence.MOST_CHARS
    assert made["step"] == "join"
    assert made["output"].endswith("x y "), "the end is what matters"
    assert made["steps"][-1] == {"step": "join", "host": "gpu1", "attempt": 1, "phase": "failed", "ms": 1500}


def test_a_failed_act_brings_the_state_of_the_services_and_the_last_acts_of_the_host(tmp_path: Path) -> None:
    """host.sh for real, with a systemctl of our own."""
    tools = tmp_path / "bin"
    tools.mkdir()
    answer = "Result=exit-code\\nNRestarts=3\\nId=slurmd.service\\nActiveState=failed\\nSubState=failed\\n"
    other = "Result=success\\nNRestarts=0\\nId=munge.service\\nActiveState=active\\nSubState=running\\n"
    (tools / "systemctl").write_text(f"#!/bin/sh\ncase \"$*\" in *NRestarts*) printf '{answer}\\n{other}';; esac\n")
    (tools / "systemctl").chmod(0o755)
    text = preamble(PROFILE, Claim("inst_00000001", "op_00000001", 1), step="join", unit="", within=1)
    text = text.replace("/var/lib/gpuaas-slurm", f"{tmp_path}/lib").replace("RUN=/run", f"RUN={tmp_path}/run")
    text = text.replace("PATH=/usr/sbin", f"PATH={tools}:/usr/sbin")
    script = f"{text}\nprobe() {{ true; }}\nact() {{ echo it broke; exit 1; }}\nrun_act\n"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False, env=dict(os.environ)
    )
    detail = FAILURES.explain(
        parse(done.returncode, done.stdout), host="gpu1", step="join", title="Joining", code="step_failed"
    ).detail
    assert "it broke" in detail["output"]
    slurmd = {"unit": "slurmd.service", "active": "failed", "sub": "failed", "result": "exit-code", "restarts": "3"}
    assert slurmd in detail["units"]
    assert [one["unit"] for one in detail["units"]] == ["slurmd.service", "munge.service"]
    assert json.loads(detail["host_journal"][-1])["step"] == "join"
