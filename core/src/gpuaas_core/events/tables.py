"""Table of events."""

from sqlalchemy import JSON, BigInteger, Column, Index, String, Table, UniqueConstraint

from ..kit.db import metadata

events = Table(
    "events",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("id", String(40), nullable=False),
    Column("type", String(80), nullable=False),
    Column("project_id", String(40)),
    Column("subject", String(80), nullable=False),
    Column("correlation_id", String(128), nullable=False),
    Column("trace_id", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("data", JSON, nullable=False),
    UniqueConstraint("id"),
    Index("ix_events_project", "project_id", "sequence"),
    Index("ix_events_subject", "tenant_id", "subject", "sequence"),
    Index("ix_events_correlation", "correlation_id"),
)
