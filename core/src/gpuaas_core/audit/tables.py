"""Table of the audit trail."""

from sqlalchemy import BigInteger, Column, Index, String, Table, Text

from ..kit.db import metadata

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
