"""Tables of teardown: orphan records and departure certificates."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, String, Table, Text

from ..kit.db import metadata

# Abandoned without evidence: parts may still be on the machine. Listed until a person has inspected it.
orphans = Table(
    "orphans",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("instance_id", String(40), ForeignKey("instances.id"), nullable=False),
    Column("member_id", String(40), nullable=False),
    Column("operation_id", String(40)),
    Column("allocation_id", String(40), nullable=False),
    Column("node_id", String(40), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("resolved_by", String(40)),
    Column("resolved_at", BigInteger),
    Column("resolution", Text),
    Index("ix_orphans_project", "project_id", "id"),
    Index("ix_orphans_node", "node_id"),
)

# What was proven when an instance or one member left a machine. Never changed.
departure_certificates = Table(
    "departure_certificates",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("instance_id", String(40), ForeignKey("instances.id"), nullable=False),
    Column("operation_id", String(40), nullable=False),  # may be deleted before the certificate is
    Column("allocation_id", String(40), nullable=False),
    Column("node_id", String(40), nullable=False),
    Column("statement", JSON, nullable=False),
    Column("digest", String(80), nullable=False),
    Column("issued_at", BigInteger, nullable=False),
    Index("ix_departure_certificates_project", "project_id", "id"),
    Index("ix_departure_certificates_operation", "operation_id"),
)
