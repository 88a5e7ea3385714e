"""The task that downloads an artifact through the platform. Size and digest are checked during the download; the file
appears under its name only if both are correct."""

import hashlib
import os
from typing import Any

from gpuaas_agent.tasks import paths
from gpuaas_agent.tasks.acts.write_file import owned_by
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work


def act(work: Work) -> dict[str, Any]:
    arguments = work.arguments
    with work.step("fetch"):
        work.ledger.note(file=arguments["path"])
        with (
            paths.folder_of(work.places.root, arguments["path"], lambda made: work.ledger.note(folder=made)) as (
                folder,
                name,
            ),
            paths.new_file(folder, name, int(arguments["mode"], 8), owned_by(None, None)) as file,
        ):
            receive(work, file)
    return {"path": arguments["path"], "size": arguments["size"], "sha256": arguments["sha256"]}


def receive(work: Work, file: int) -> None:
    """Download the artifact into an open file. Raises TaskFailed if its size or digest differs from the announced
    one."""
    arguments, digest, size = work.arguments, hashlib.sha256(), 0
    for chunk in work.api.download(f"/v1/nodes/{work.task.node_id}/deliveries/{arguments['delivery']}"):
        work.checkpoint()
        size += len(chunk)
        if size > arguments["size"]:
            raise TaskFailed(f"More than the announced {arguments['size']} bytes arrived; nothing was kept.")
        digest.update(chunk)
        left = memoryview(chunk)
        while left:
            left = left[os.write(file, left) :]
    if size != arguments["size"] or digest.hexdigest() != arguments["sha256"]:
        raise TaskFailed(f"{size} bytes with another digest than announced arrived; nothing was kept.")
