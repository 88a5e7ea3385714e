"""Queues a task that upgrades a node's agent to the version this platform ships."""

from ..authz.context import Context
from ..capacity.reads import node_row
from . import agent_package, service
from .errors import AgentTooOld
from .rows import TaskRow

UPGRADE = "upgrade_agent"


def ask(ctx: Context, node_id: str) -> TaskRow:
    node, wanted = node_row(ctx.tx, node_id), agent_package.package()
    ctx.resource_id = node_id
    if node_row(ctx.tx, node_id).tasks_at is None:
        raise AgentTooOld(f"The agent of {node.name!r} has never requested a task.")
    arguments = {"version": wanted.version, "sha256": wanted.sha256, "size": len(wanted.archive)}
    return service.queue(ctx, node, UPGRADE, arguments)
