"""Tasks of nodes, requested by a controller under its claim or by operators."""

from __future__ import annotations

from ..call import call
from ..models import TaskView, WipeView
from ..request import JsonObject, Page, Request, get, post


class TaskCalls:
    @call
    def ask_task(
        self,
        project_id: str,
        operation_id: str,
        *,
        claim_epoch: int,
        allocation_id: str,
        kind: str,
        arguments: JsonObject,
    ) -> Request[TaskView]:
        """Request a task on a node of the claimed operation; the kinds are in contracts/node-tasks.json."""
        path = "/v1/projects/{}/operations/{}/tasks"
        body = {"claim_epoch": claim_epoch, "allocation_id": allocation_id, "kind": kind, "arguments": arguments}
        return post(TaskView, path, project_id, operation_id, **body)

    @call
    def get_task(self, project_id: str, operation_id: str, task_id: str, *, wait_s: int = 0) -> Request[TaskView]:
        """Get a task; with `wait_s` the call waits until the task has ended."""
        path = "/v1/projects/{}/operations/{}/tasks/{}"
        return get(TaskView, path, project_id, operation_id, task_id, wait_s=wait_s).within(wait_s + 10.0)

    @call
    def list_node_tasks(
        self, node_id: str, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[TaskView]]:
        return get(Page[TaskView], "/v1/nodes/{}/tasks", node_id, state=state, limit=limit, cursor=cursor)

    @call
    def upgrade_agent(self, node_id: str) -> Request[TaskView]:
        """Upgrade a node's agent to the platform's version. If the new version fails, the node keeps the current
        one."""
        return post(TaskView, "/v1/nodes/{}/upgrade-agent", node_id)

    @call
    def wipe_node(self, node_id: str, *, reason: str, by_hand: bool = False) -> Request[WipeView]:
        """Repeat a failed wipe of a node, or record with `by_hand` that a person cleaned it."""
        return post(WipeView, "/v1/nodes/{}/wipe", node_id, reason=reason, by_hand=by_hand)

    @call
    def get_node_task(self, node_id: str, task_id: str) -> Request[TaskView]:
        return get(TaskView, "/v1/nodes/{}/tasks/{}", node_id, task_id)
