"""Tables of events, and the heads of the sequences of events and audit rows of each tenant."""

from sqlalchemy import JSON, BigInteger, Column, Index, String, Table, UniqueConstraint

from ..kit.db import metadata

GENESIS = "0" * 64  # the hash before the first audit row


event_heads = Table(
    "event_heads",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("audit_sequence", BigInteger, nullable=False, server_default="0"),
    Column("audit_hash", String(64), nullable=False, server_default=GENESIS),
    Column("audit_anchored", BigInteger, nullable=False, server_default="0"),  # of the newest checkpoint
)

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
