"""Tables of custody. Private keys are stored only sealed."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from ..kit.db import metadata

data_keys = Table(
    "data_keys",
    metadata,
    Column("owner", String(40), primary_key=True),  # a tenant, the platform, or the root key
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("holder", String(20), nullable=False),
    Column("holder_version", String(20), nullable=False),  # of the master key that wrapped it
    Column("wrapped", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

ssh_authorities = Table(
    "ssh_authorities",
    metadata,
    Column("tenant_id", String(40), ForeignKey("tenants.id"), primary_key=True),
    Column("purpose", String(10), primary_key=True),  # user, host
    Column("public_key", Text, nullable=False),
    Column("sealed_private_key", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

access_grants = Table(
    "access_grants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("serial", BigInteger, nullable=False),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("operation_id", String(40), nullable=False),
    Column("claim_epoch", BigInteger, nullable=False),
    Column("allocation_id", String(40), nullable=False),
    Column("principal_id", String(40), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_access_grants_operation", "operation_id"),
)

runtime_secrets = Table(
    "runtime_secrets",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("instance_id", String(40), nullable=False),
    Column("name", String(40), nullable=False),
    Column("version", Integer, nullable=False),
    Column("origin", String(20), nullable=False),  # generated, provided
    Column("sealed", LargeBinary, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("instance_id", "name", "version"),
)
