"""Reads of tasks, also for other rooms."""

from typing import Any

from sqlalchemy import Connection, Row, Select, select

from ..kit.problems import UNSEEN, NotFound
from .tables import node_tasks


def tasks_of(node_id: str, state: str | None) -> Select[Any]:
    query = select(node_tasks).where(node_tasks.c.node_id == node_id)
    return query.where(node_tasks.c.state == state) if state else query


def task_of_node(tx: Connection, node_id: str, task_id: str, *, lock: bool = False) -> Row[Any]:
    query = select(node_tasks).where(node_tasks.c.id == task_id, node_tasks.c.node_id == node_id)
    return _require(tx, query.with_for_update() if lock else query)


def task_of_operation(tx: Connection, project_id: str, operation_id: str, task_id: str) -> Row[Any]:
    t = node_tasks.c
    return _require(
        tx, select(node_tasks).where(t.id == task_id, t.project_id == project_id, t.operation_id == operation_id)
    )


def _require(tx: Connection, query: Select[Any]) -> Row[Any]:
    row = tx.execute(query).first()
    if row is None:
        raise NotFound(UNSEEN)
    return row
