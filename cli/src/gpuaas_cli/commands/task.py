"""`gpuaas task list|show`: the tasks of nodes and their results."""

from __future__ import annotations

import json

import gpuaas_sdk as sdk
from cyclopts import App

from .. import show
from ..options import Looking, Tenant
from ..session import session
from .node import node_id

app = App(name="task", help="List and show the tasks of a node.")


@app.command(name="list")
def list_tasks(node: str, /, *, state: str | None = None, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """List the tasks of a node, oldest first.

    Example: gpuaas task list gpu-box-1
    Example: gpuaas task list gpu-box-1 --state failed

    Parameters
    ----------
    node
        Name or id of the node.
    state
        List only tasks in this state: queued, running, succeeded, failed, refused, interrupted, expired or canceled.
    """
    with session(common) as at:
        found = list(at.client.every(sdk.Calls.list_node_tasks, node_id(at, node, tenant), state=state))
    if common.json:
        return show.as_json(found)
    if not found:
        print(f"{node} has no tasks." if state is None else f"{node} has no {state} tasks.")
        return None
    rows = [(t.kind, t.state, str(t.attempt), show.ago(t.created_at), t.message or "-", t.id) for t in found]
    return show.table(("KIND", "STATE", "ATTEMPT", "CREATED", "MESSAGE", "ID"), rows)


@app.command(name="show")
def show_task(node: str, task: str, /, *, tenant: Tenant = None, common: Looking = Looking()) -> None:
    """Show a task and its result.

    Example: gpuaas task show gpu-box-1 task_01hx…

    Parameters
    ----------
    node
        Name or id of the node.
    task
        Id of the task, see `gpuaas task list`.
    """
    with session(common) as at:
        found = at.client.get_node_task(node_id(at, node, tenant), task)
    if common.json:
        return show.as_json(found)
    known = [
        ("task", f"{found.kind} ({found.id})"),
        ("state", found.state),
        ("message", found.message),
        ("requested", f"{show.ago(found.created_at)} by {found.asked_by}"),
        ("for", found.operation_id or found.allocation_id or "the node itself"),
        ("attempt", f"{found.attempt}, epoch {found.epoch}"),
        ("evidence", json.dumps(found.evidence) if found.evidence else ""),
        ("correlation", found.correlation_id),
    ]
    return show.facts(known)
