"""What goes to the platform for triage: steps and commands in short; never a script, its input or its output."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
import structlog
from gpuaas_sdk.host_steps.host import Claim, Host
from gpuaas_slurm import logs
from gpuaas_slurm.profile import PROFILE

SECRET = "munge-key-material"


class Kept:
    """Stands for the SDK's TelemetrySender."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def line(self, message: str, **more: Any) -> None:
        self.lines.append({"message": message, **more})


@dataclass
class Result:
    exit: int
    stdout: str
    stderr: str


class Machine:
    async def run(self, argv: list[str], *, input: bytes | str | None = None, timeout: float = 60) -> Result:  # noqa: ASYNC109
        assert SECRET in argv[-1]
        assert input == SECRET.encode()
        return Result(3, f"@log {SECRET}\n", "first line\nmunged: cannot bind\n\n")


@pytest.fixture
def kept() -> Any:
    structlog.configure(processors=[*logs.SHARED, logs.forward_line, structlog.processors.JSONRenderer()])
    kept = Kept()
    ids = {"correlation_id": "cor-of-op", "operation_id": "op_1", "project_id": "prj_1", "claim_epoch": 2}
    with logs.send_to_platform(kept, "prj_1"), structlog.contextvars.bound_contextvars(**ids):  # type: ignore[arg-type]
        yield kept
    structlog.reset_defaults()


async def test_a_host_command_is_told_in_short_and_without_secrets(kept: Kept) -> None:
    host = Host(Machine(), Claim("inst_00000001", "op_00000001", 2), "alloc_1", "node-a", "10.0.0.9", PROFILE)
    await host.script(f"echo {SECRET}", step="munge_key", data=SECRET.encode())
    (line,) = kept.lines
    assert line["message"].startswith("munge_key on node-a ended with 3 after ")
    assert line["message"].endswith("ms: munged: cannot bind")
    assert (line["level"], line["kind"], line["correlation_id"], line["operation_id"]) == (
        "warning",
        "command",
        "cor-of-op",
        "op_1",
    )
    assert SECRET not in json.dumps(kept.lines)


def test_only_named_fields_leave_the_process(kept: Kept) -> None:
    log = structlog.get_logger()
    log.warning("operation fails", code="disk_full", message="The disk is full.", detail={"output": SECRET}, new=SECRET)
    (line,) = kept.lines
    assert line["message"] == "operation fails: The disk is full."
    assert line["code"] == "disk_full"
    assert SECRET not in json.dumps(kept.lines)


def test_a_step_is_a_sentence(kept: Kept) -> None:
    log = structlog.get_logger()
    log.info("step done", kind="step", step="munge", host="node-a", acted=True, ms=120)
    log.info("step done", kind="step", step="munge", host="node-a", acted=False, ms=0)
    assert [line["message"] for line in kept.lines] == [
        "munge on node-a: done in 120 ms",
        "munge on node-a: already so",
    ]


def test_lines_without_an_operation_stay_here(kept: Kept) -> None:
    with structlog.contextvars.bound_contextvars(project_id="prj_other"):
        structlog.get_logger().info("elsewhere")
    structlog.contextvars.clear_contextvars()
    structlog.get_logger().info("controller starts")
    assert kept.lines == []
