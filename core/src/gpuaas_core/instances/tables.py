"""The tables of instances and their members."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text, literal_column, text

from ..kit.db import metadata

# As a literal in the SQL, not as a parameter: otherwise SQLite does not use the partial index of living names.
GONE = literal_column("'deleted'", String)

instances = Table(
    "instances",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), ForeignKey("projects.id"), nullable=False),
    Column("tenant_id", String(40), nullable=False),
    Column("name", String(40), nullable=False),
    Column("app_slug", String(40), nullable=False),
    Column("version", String(40), nullable=False),
    Column("topology", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("health_status", String(20), nullable=False),
    Column("health_sentence", Text, nullable=False),
    Column("conditions", JSON, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("observed_generation", Integer, nullable=False),
    Column("inputs", JSON, nullable=False),
    Column("placement_intent", JSON, nullable=False),
    Column("operating_mode", String(30), nullable=False),
    Column("control_plane_scope", String(20), nullable=False),
    Column("runtime_backend", String(20), nullable=False),
    Column("tenant_boundary_mode", String(30), nullable=False),
    Column("operator_id", String(40)),  # the only service account that works on it; none: any that may
    Column("requested", JSON),  # the modes that the request named; the columns above are what policy decided
    Column("previous_version", String(40)),  # to roll back to
    Column("runtime_version", String(120)),
    Column("access", JSON),
    Column("adapter_detail", JSON),
    Column("last_operation_id", String(40)),
    Column("correlation_id", String(128), nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_instances_project", "project_id", "id"),
    Index("ix_instances_last_operation", "last_operation_id"),
    Index(
        "uq_instances_live_name",
        "project_id",
        "name",
        unique=True,
        sqlite_where=text("state <> 'deleted'"),
        postgresql_where=text("state <> 'deleted'"),
    ),
)

members = Table(
    "members",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("instance_id", String(40), ForeignKey("instances.id"), nullable=False),
    Column("component_key", String(40), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("allocation_id", String(40), ForeignKey("allocations.id"), nullable=False),
    Column("node_id", String(40), nullable=False),
    Column("runtime_state", String(120)),
    Column("runtime_version", String(120)),
    Column("adapter_detail", JSON),
    Column("replaces", String(40)),
    Column("last_operation_id", String(40)),
    Column("correlation_id", String(128), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_members_instance", "instance_id", "id"),
    Index("ix_members_allocation", "allocation_id"),
    Index("ix_members_last_operation", "last_operation_id"),
)
