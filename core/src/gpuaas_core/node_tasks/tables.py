"""The table of tasks. `arguments` and `evidence` never contain a secret, because nodes do not get secrets by tasks."""

from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text, text

from ..kit.db import metadata

_LIVE = text("ended_at is null")

node_tasks = Table(
    "node_tasks",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("node_id", String(40), ForeignKey("nodes.id"), nullable=False),
    Column("allocation_id", String(40)),
    Column("project_id", String(40)),
    Column("operation_id", String(40)),
    Column("kind", String(40), nullable=False),
    Column("arguments", JSON, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("idempotent", Boolean, nullable=False),
    Column("state", String(20), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("lease_expires_at", BigInteger),
    Column("deadline_at", BigInteger, nullable=False),
    Column("message", Text, nullable=False),
    Column("evidence", JSON, nullable=False),
    Column("asked_by", String(40), nullable=False),
    Column("correlation_id", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    Index("ix_node_tasks_node", "node_id", "id"),
    Index("ix_node_tasks_operation", "operation_id", "id"),
    Index("ix_node_tasks_ended", "ended_at"),
    Index("ix_node_tasks_live", "node_id", "id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_node_tasks_due", "deadline_at", sqlite_where=_LIVE, postgresql_where=_LIVE),
)
