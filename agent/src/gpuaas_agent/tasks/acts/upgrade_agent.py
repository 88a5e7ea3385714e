"""The task that upgrades this agent: it downloads and checks the new version, stores it beside the current one and
tries it.

The restart ends this process in the middle of the task. The current version then tries the new version (`upgrade.py`).
The version that runs after the trial finds the journal, runs the task again and reports the result.
"""

import hashlib
import time
from typing import Any

from gpuaas_agent import upgrade
from gpuaas_agent.errors import UpgradeRefused
from gpuaas_agent.tasks.acts.run_unit import SYSTEMCTL
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work

UNIT = "gpuaas-agent.service"
STARTS_WITHIN_S = 60


def act(work: Work) -> dict[str, Any]:
    arguments = work.arguments
    release = upgrade.release_of(arguments["version"], arguments["sha256"])
    if upgrade.running(work.places) == release:
        return {"release": release}
    _say_if_tried(work, release)
    with work.step("fetch"):
        archive = _fetched(work)
    with work.step("stage"):
        _stage(work, archive)
    with work.step("start"):
        work.must([SYSTEMCTL, "restart", "--no-block", UNIT])
        time.sleep(STARTS_WITHIN_S)  # this process ends here
    raise TaskFailed("The service manager did not start the agent again; the former version goes on.")


def _say_if_tried(work: Work, release: str) -> None:
    """Raise TaskFailed if this task has already tried the release and the trial failed. A later task may try the same
    release again."""
    last = upgrade.outcome(work.places)
    if last and last.get("asked_by") == work.task.task_id and not last["taken"]:
        raise TaskFailed(f"{release} was tried and is not taken: {last['why']}.")


def _stage(work: Work, archive: bytes) -> None:
    try:
        upgrade.stage(work.places, archive, work.arguments["sha256"], work.task.task_id)
    except UpgradeRefused as error:
        raise TaskFailed(error.sentence) from error


def _fetched(work: Work) -> bytes:
    arguments, archive = work.arguments, bytearray()
    for chunk in work.api.download(f"/v1/agent/{arguments['version']}"):
        work.checkpoint()
        archive += chunk
        if len(archive) > arguments["size"]:
            raise TaskFailed(f"More than the announced {arguments['size']} bytes arrived; nothing was kept.")
    if len(archive) != arguments["size"] or hashlib.sha256(archive).hexdigest() != arguments["sha256"]:
        raise TaskFailed(f"{len(archive)} bytes with another digest than announced arrived; nothing was kept.")
    return bytes(archive)
