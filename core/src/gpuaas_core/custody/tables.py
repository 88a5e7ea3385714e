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
    text,
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
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", String(20), nullable=False),
    Column("public_key", Text, nullable=False),
    Column("sealed_private_key", LargeBinary),  # null once it is retired
    Column("created_at", BigInteger, nullable=False),
    Column("activated_at", BigInteger),
    Column("retired_at", BigInteger),
    Index(
        "uq_ssh_authorities_active",
        "tenant_id",
        "purpose",
        unique=True,
        sqlite_where=text("state = 'active'"),
        postgresql_where=text("state = 'active'"),
    ),
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
    Column("key_id", String(40)),  # the key its principal signed in with; the grant ends when that key is retired
    Column("user_authority", Integer, nullable=False, server_default="1"),  # the authority that signed it
    Column("host_authority", Integer, nullable=False, server_default="1"),  # the newest authority the client was given
    Column("source_addresses", Text),
    Column("purpose", String(20), nullable=False, server_default="operation"),  # or observation, or person
    Column("member_id", String(40)),  # for a person: the member whose node was requested
    Column("expires_at", BigInteger, nullable=False),
    Column("ends_at", BigInteger),  # for a person: when the last session it opened ends
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("revoke_reason", Text),
    Column("revoked_generation", Integer),  # trust generation of the node; once applied, the grant is without effect
    Index("ix_access_grants_operation", "operation_id"),
    Index("ix_access_grants_expires", "expires_at"),
    Index("ix_access_grants_ends", "ends_at"),
    Index("ix_access_grants_project", "project_id", "id"),
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
    Column("id", String(40), nullable=False),  # the id under which the sealed answer is kept
    Column("instance_id", String(40), nullable=False),
    Column("principal_id", String(40), nullable=False),
    Column("delivered_at", BigInteger, nullable=False),
    Column("repeatable", Integer, nullable=False),  # the sealed answer can still be repeated
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
