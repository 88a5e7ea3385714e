"""Tables of log lines and trace spans, stored for a week: those of requests to the core, and those that controllers
send."""

from sqlalchemy import JSON, BigInteger, Column, Index, String, Table, Text

from ..kit.db import metadata

log_lines = Table(
    "log_lines",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("level", String(10), nullable=False),
    Column("source", String(20), nullable=False),
    Column("message", Text, nullable=False),
    Column("correlation_id", String(128), nullable=False),
    Column("trace_id", String(64)),
    Column("tenant_id", String(40)),
    Column("project_id", String(40)),
    Column("operation_id", String(40)),
    Column("principal_id", String(40), nullable=False),
    Column("fields", JSON, nullable=False),
    Index("ix_log_lines_correlation", "correlation_id", "at"),
    Index("ix_log_lines_received", "received_at"),
    Index("ix_log_lines_trace", "trace_id"),
)

spans = Table(
    "spans",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("trace_id", String(64), nullable=False),
    Column("span_id", String(16), nullable=False),
    Column("parent_id", String(16)),
    Column("name", String(200), nullable=False),
    Column("status", String(10), nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("correlation_id", String(128), nullable=False),
    Column("tenant_id", String(40)),
    Column("project_id", String(40)),
    Column("operation_id", String(40)),
    Column("principal_id", String(40), nullable=False),
    Column("attributes", JSON, nullable=False),
    Index("ix_spans_correlation", "correlation_id", "started_at"),
    Index("ix_spans_received", "received_at"),
    Index("ix_spans_trace", "trace_id"),
)
