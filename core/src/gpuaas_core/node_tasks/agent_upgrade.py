"""Queues a task that upgrades a node's agent to the version this platform ships."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..capacity import agent_package
from ..capacity.reads import node_row
from . import service
from .errors import AgentTooOld
from .wipe import knows_tasks

UPGRADE = "upgrade_agent"


def ask(ctx: Context, node_id: str) -> Row[Any]:
    node, wanted = node_row(ctx.tx, node_id), agent_package.package()
    ctx.resource_id = node_id
    if not knows_tasks(ctx.tx, node_id):
        raise AgentTooOld(f"The agent of {node.name!r} has never requested a task.")
    arguments = {"version": wanted.version, "sha256": wanted.sha256, "size": len(wanted.archive)}
    return service.queue(ctx, node, UPGRADE, arguments)
