"""Counts of nodes for the metrics."""

from sqlalchemy import Connection, func, select

from .tables import nodes

_BY_STATE = select(nodes.c.state, func.count()).group_by(nodes.c.state)


def nodes_by_state(tx: Connection) -> dict[str, int]:
    return {state: count for state, count in tx.execute(_BY_STATE)}
