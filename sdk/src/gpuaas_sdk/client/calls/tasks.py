"""Tasks of machines: what a controller asks for under its claim, and what operators look at."""

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
        """Has a machine of the claimed operation do something; the kinds are in contracts/node-tasks.json."""
        path = "/v1/projects/{}/operations/{}/tasks"
        body = {"claim_epoch": claim_epoch, "allocation_id": allocation_id, "kind": kind, "arguments": arguments}
        return post(TaskView, path, project_id, operation_id, **body)

    @call
    def get_task(self, project_id: str, operation_id: str, task_id: str, *, wait_s: int = 0) -> Request[TaskView]:
        """As it is, or as soon as it has ended."""
        path = "/v1/projects/{}/operations/{}/tasks/{}"
        return get(TaskView, path, project_id, operation_id, task_id, wait_s=wait_s).within(wait_s + 10.0)

    @call
    def list_node_tasks(
        self, node_id: str, *, state: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Request[Page[TaskView]]:
        return get(Page[TaskView], "/v1/nodes/{}/tasks", node_id, state=state, limit=limit, cursor=cursor)

    @call
    def upgrade_agent(self, node_id: str) -> Request[TaskView]:
        """To the version the platform gives out; the machine keeps its present one if that does not get through."""
        return post(TaskView, "/v1/nodes/{}/upgrade-agent", node_id)

    @call
    def wipe_node(self, node_id: str, *, reason: str, by_hand: bool = False) -> Request[WipeView]:
        """After a failed wipe: repeat it, or `by_hand` if a person has cleaned the machine."""
        return post(WipeView, "/v1/nodes/{}/wipe", node_id, reason=reason, by_hand=by_hand)

    @call
    def get_node_task(self, node_id: str, task_id: str) -> Request[TaskView]:
        return get(TaskView, "/v1/nodes/{}/tasks/{}", node_id, task_id)
