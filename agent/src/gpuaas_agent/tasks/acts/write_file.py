"""The task that writes a file atomically, with its mode and owner."""

import grp
import hashlib
import os
import pwd
from typing import Any

from gpuaas_agent.tasks import paths
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.work import Work


def act(work: Work) -> dict[str, Any]:
    arguments = work.arguments
    data = arguments["content"].encode()
    owner = owned_by(arguments.get("owner"), arguments.get("group"))
    with work.step("write"):
        work.ledger.note(file=arguments["path"])
        with (
            paths.folder_of(work.places.root, arguments["path"], lambda made: work.ledger.note(folder=made)) as (
                folder,
                name,
            ),
            paths.new_file(folder, name, int(arguments["mode"], 8), owner) as file,
        ):
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
    return {"path": arguments["path"], "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def owned_by(owner: str | None, group: str | None) -> tuple[int, int]:
    try:
        user = pwd.getpwnam(owner) if owner else pwd.getpwuid(os.geteuid())
        return user.pw_uid, grp.getgrnam(group).gr_gid if group else user.pw_gid
    except KeyError as error:
        raise TaskFailed(f"No such user or group on this host: {owner or ''} {group or ''}".strip()) from error
