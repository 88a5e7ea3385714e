"""Tables of credentials and runtime secrets. Values are stored only sealed."""

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
    text,
)

from ..kit.db import metadata

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

credentials = Table(
    "credentials",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), ForeignKey("projects.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("kind", String(20), nullable=False),  # ssh_key
    Column("state", String(20), nullable=False),
    Column("version", Integer, nullable=False),  # the newest
    Column("overlap_ends_at", BigInteger),  # while rotating
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("revoke_reason", Text),
    Index("ix_credentials_project", "project_id", "id"),
    Index(
        "uq_credentials_live_name",
        "project_id",
        "name",
        unique=True,
        sqlite_where=text("state <> 'revoked'"),
        postgresql_where=text("state <> 'revoked'"),
    ),
)

credential_versions = Table(
    "credential_versions",
    metadata,
    Column("credential_id", String(40), ForeignKey("credentials.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40), nullable=False),
    Column("origin", String(20), nullable=False),  # generated, imported
    Column("algorithm", String(20), nullable=False),
    Column("public_key", Text, nullable=False),
    Column("fingerprint", String(60), nullable=False),
    Column("sealed_private_key", LargeBinary),  # null once the version is retired
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("retired_at", BigInteger),
)

credential_bindings = Table(
    "credential_bindings",
    metadata,
    Column("credential_id", String(40), ForeignKey("credentials.id"), primary_key=True),
    Column("instance_id", String(40), primary_key=True),
    Column("bound_by", String(40), nullable=False),
    Column("bound_at", BigInteger, nullable=False),
    Index("ix_credential_bindings_instance", "instance_id"),
)

# The primary key guarantees one delivery per operation, claim epoch, credential and version.
credential_deliveries = Table(
    "credential_deliveries",
    metadata,
    Column("operation_id", String(40), primary_key=True),
    Column("claim_epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("credential_id", String(40), ForeignKey("credentials.id"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("id", String(40), nullable=False),  # the id under which the encrypted response is stored
    Column("instance_id", String(40), nullable=False),
    Column("principal_id", String(40), nullable=False),
    Column("delivered_at", BigInteger, nullable=False),
    Column("repeatable", Integer, nullable=False),  # the encrypted response is still stored
    Index("ix_credential_deliveries_credential", "credential_id", "instance_id"),
    Index("ix_credential_deliveries_instance", "instance_id"),
    Index("ix_credential_deliveries_repeatable", "repeatable", "delivered_at"),
)

# The same guarantee for runtime secrets: every version has an id of its own.
secret_deliveries = Table(
    "secret_deliveries",
    metadata,
    Column("operation_id", String(40), primary_key=True),
    Column("claim_epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("secret_id", String(40), primary_key=True),
    Column("id", String(40), nullable=False),
    Column("instance_id", String(40), nullable=False),
    Column("principal_id", String(40), nullable=False),
    Column("delivered_at", BigInteger, nullable=False),
    Column("repeatable", Integer, nullable=False),
    Index("ix_secret_deliveries_instance", "instance_id"),
    Index("ix_secret_deliveries_repeatable", "repeatable", "delivered_at"),
)
