"""Queries for tasks, also for other rooms."""

from sqlalchemy import Connection, bindparam, select

from ..kit.problems import UNSEEN, NotFound
from ..kit.rows import Query
from .rows import TaskRow
from .tables import node_tasks

_t = node_tasks.c
TASKS = Query(select(node_tasks), TaskRow)
_OF_NODE = TASKS.where(_t.id == bindparam("task"), _t.node_id == bindparam("node"))
_OF_NODE_LOCKED = _OF_NODE.locked()
_OF_OPERATION = TASKS.where(
    _t.id == bindparam("task"), _t.project_id == bindparam("project"), _t.operation_id == bindparam("operation")
)
_LIVE = select(_t.id).where(_t.id == bindparam("task"), _t.node_id == bindparam("node"), _t.ended_at.is_(None))


def tasks_of(node_id: str, state: str | None) -> Query[TaskRow]:
    query = TASKS.where(_t.node_id == node_id)
    return query.where(_t.state == state) if state else query


def task_of_node(tx: Connection, node_id: str, task_id: str, *, lock: bool = False) -> TaskRow:
    return _require((_OF_NODE_LOCKED if lock else _OF_NODE).first(tx, node=node_id, task=task_id))


def task_of_operation(tx: Connection, project_id: str, operation_id: str, task_id: str) -> TaskRow:
    return _require(_OF_OPERATION.first(tx, project=project_id, operation=operation_id, task=task_id))


def is_live(tx: Connection, node_id: str, task_id: str) -> bool:
    """Return True if the node has this task and the task has not ended."""
    return tx.execute(_LIVE, {"node": node_id, "task": task_id}).first() is not None


def _require(row: TaskRow | None) -> TaskRow:
    if row is None:
        raise NotFound(UNSEEN)
    return row
