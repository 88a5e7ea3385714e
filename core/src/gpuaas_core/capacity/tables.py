"""Tables of capacity. One live allocation per node is a constraint of the store, not a hope."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text, UniqueConstraint, text

from ..kit.db import metadata

enrolments = Table(
    "enrolments",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("node_name", String(40), nullable=False),
    Column("labels", JSON, nullable=False),
    Column("region", String(63), nullable=False, server_default="default"),
    Column("sku", String(63), nullable=False, server_default="unspecified"),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_by_node", String(40)),
    Column("used_fingerprint", String(64)),
    Column("created_at", BigInteger, nullable=False),
)

nodes = Table(
    "nodes",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("address", String(64), nullable=False),
    Column("ssh_port", Integer, nullable=False),
    Column("ssh_host_public_key", Text, nullable=False),
    Column("host_certificate", Text, nullable=False),
    Column("labels", JSON, nullable=False),
    Column("region", String(63), nullable=False, server_default="default"),
    Column("sku", String(63), nullable=False, server_default="unspecified"),
    Column("facts", JSON, nullable=False),
    Column("trust_generation", Integer, nullable=False),
    Column("trust_applied", Integer, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("tenant_id", "name"),
)

allocations = Table(
    "allocations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), ForeignKey("projects.id"), nullable=False),
    Column("node_id", String(40), ForeignKey("nodes.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("scheduler_type", String(40)),
    Column("integration_metadata", JSON, nullable=False),
    Column("trust_generation", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_allocations_project", "project_id", "id"),
    Index(
        "uq_allocations_live_node",
        "node_id",
        unique=True,
        sqlite_where=text("state <> 'released'"),
        postgresql_where=text("state <> 'released'"),
    ),
)
