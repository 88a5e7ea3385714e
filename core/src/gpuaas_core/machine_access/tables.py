"""Tables of machine access. The private key of an authority is stored only in encrypted form."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text, text

from ..kit.db import metadata

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
    Column("purpose", String(20), nullable=False, server_default="operation"),  # a registered purpose
    Column("subject_kind", String(40), nullable=False),  # what its holder works on, looks at or enters
    Column("subject_id", String(40), nullable=False),
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
    Index("ix_access_grants_allocation", "allocation_id", "expires_at"),
)
