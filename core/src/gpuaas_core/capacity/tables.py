"""Tables of nodes, allocations, quotas, regions, SKUs and pools. A unique index allows one live allocation per node."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, String, Table, Text, text

from ..kit.db import metadata

nodes = Table(
    "nodes",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("standing", String(20), nullable=False, server_default="ready"),  # what administrators decided
    Column("standing_reason", Text),
    Column("address", String(64), nullable=False),
    Column("ssh_port", Integer, nullable=False),
    Column("ssh_host_public_key", Text, nullable=False),
    Column("host_certificate", Text, nullable=False),
    Column("host_authority", Integer, nullable=False, server_default="1"),  # the authority that signed it
    Column("host_certified_until", BigInteger, nullable=False, server_default="0"),
    Column("labels", JSON, nullable=False),
    Column("region", String(63), nullable=False, server_default="default"),
    Column("sku", String(63), nullable=False, server_default="unspecified"),
    Column("pool", String(40)),
    Column("facts", JSON, nullable=False),
    Column("trust_generation", Integer, nullable=False),
    Column("trust_applied", Integer, nullable=False),
    Column("tasks_at", BigInteger),  # when its agent first requested tasks; null: an agent without tasks
    Column(
        "authority_generation", Integer, nullable=False, server_default="0"
    ),  # the last generation that changed an authority
    Column("created_at", BigInteger, nullable=False),
    Index("ix_nodes_tenant", "tenant_id", "id"),
    Index("ix_nodes_certified_until", "host_certified_until"),
    Index(
        "uq_nodes_living_name",
        "tenant_id",
        "name",
        unique=True,
        sqlite_where=text("state <> 'retired'"),
        postgresql_where=text("state <> 'retired'"),
    ),
)

# No index on the times: PostgreSQL can then update a row within its page (HOT update).
node_contacts = Table(
    "node_contacts",
    metadata,
    Column("node_id", String(40), ForeignKey("nodes.id"), primary_key=True),
    Column("last_seen_at", BigInteger, nullable=False),
    Column("due_at", BigInteger, nullable=False),  # when the next poll is expected at the latest
)

allocations = Table(
    "allocations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), ForeignKey("projects.id"), nullable=False),  # the project that uses the node
    Column("owner_kind", String(20), nullable=False),  # project
    Column("owner_id", String(40), nullable=False),
    Column("node_id", String(40), ForeignKey("nodes.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("scheduler_type", String(40)),
    Column("integration_metadata", JSON, nullable=False),
    Column("trust_generation", Integer, nullable=False),
    Column("gpus", Integer, nullable=False, server_default="0"),  # as counted at allocation
    Column("lost_after_s", Integer),
    Column("expires_at", BigInteger),
    Column("overdue_since", BigInteger),
    Column("wipe", String(20)),  # null: not needed; pending, done or failed
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Index("ix_allocations_project", "project_id", "id"),
    Index(
        "ix_allocations_expiry",
        "expires_at",
        sqlite_where=text("state <> 'released'"),
        postgresql_where=text("state <> 'released'"),
    ),
    Index(
        "uq_allocations_live_node",
        "node_id",
        unique=True,
        sqlite_where=text("state <> 'released'"),
        postgresql_where=text("state <> 'released'"),
    ),
)

# What uses an allocation. One row per allocation: two holders are impossible by key.
allocation_holds = Table(
    "allocation_holds",
    metadata,
    Column("allocation_id", String(40), ForeignKey("allocations.id"), primary_key=True),
    Column("holder_kind", String(40), nullable=False),
    Column("holder_id", String(40), nullable=False),
    Index("ix_allocation_holds_holder", "holder_kind", "holder_id"),
)

regions = Table(
    "regions",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("title", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

skus = Table(
    "skus",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("gpu_model", String(80), nullable=False),
    Column("gpu_count", Integer, nullable=False),
    Column("cpus", Integer, nullable=False),
    Column("memory_mb", BigInteger, nullable=False),
    Column("price_micros_per_hour", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

pools = Table(
    "pools",
    metadata,
    Column("tenant_id", String(40), ForeignKey("tenants.id"), primary_key=True),
    Column("name", String(40), primary_key=True),
    Column("title", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

quotas = Table(
    "quotas",
    metadata,
    Column("project_id", String(40), ForeignKey("projects.id"), primary_key=True),
    Column("max_allocations", Integer),
    Column("max_gpus", Integer),
    Column("used_allocations", Integer, nullable=False),
    Column("used_gpus", Integer, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
