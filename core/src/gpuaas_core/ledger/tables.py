"""Tables of the ledger."""

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, Table, Text, UniqueConstraint, text

from ..kit.db import metadata

GENESIS = "0" * 64  # the hash before the first audit row

store_facts = Table(
    "store_facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

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

audit = Table(
    "audit",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", BigInteger, nullable=False),
    Column("actor_id", String(40), nullable=False),
    Column("actor_kind", String(20), nullable=False),
    Column("permission", String(80), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("project_id", String(40)),
    Column("resource_id", String(80)),
    Column("correlation_id", String(128), nullable=False),
    Column("trace_id", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Column("via", String(40)),  # the delegation or break-glass that granted the permission
    Column("on_behalf_of", String(40)),
    Index("ix_audit_correlation", "correlation_id"),
)

seen_requests = Table(
    "seen_requests",
    metadata,
    Column("principal_id", String(40), primary_key=True),
    Column("route", String(160), primary_key=True),
    Column("scope_id", String(80), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("location", Text),
    Column("at", BigInteger, nullable=False),
    Column("kept_for", String(40)),  # the operation or batch that outlives the usual retention
    Index("ix_seen_requests_kept_for", "kept_for"),
    Index(
        "ix_seen_requests_old", "at", sqlite_where=text("kept_for is null"), postgresql_where=text("kept_for is null")
    ),
)
