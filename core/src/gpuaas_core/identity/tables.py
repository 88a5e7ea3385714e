"""Tables of identity: sessions, keys, invitations, and the counts of the sign-in throttle."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    text,
)

from ..kit.db import metadata

principal_keys = Table(  # public keys of service accounts and nodes; several at once during a rotation
    "principal_keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("principal_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("public_jwk", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger),
    Column("retired_at", BigInteger),
    # Only for keys of nodes, which rotate automatically (node_keys.py):
    Column("generation", Integer),
    Column("thumbprint", String(43)),
    Column("expires_at", BigInteger),
    Column("origin", String(130)),  # the machine and boot that created it
    Column("superseded_by", String(40)),  # the key whose first use retired it; none if it was closed
    Index("ix_principal_keys_principal", "principal_id"),
    Index(
        "ix_principal_keys_retired",
        "retired_at",
        sqlite_where=text("generation is not null"),
        postgresql_where=text("generation is not null"),
    ),
)


invitations = Table(
    "invitations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("email", String(254), nullable=False),
    Column("name", String(120), nullable=False),
    Column("role", String(40)),
    Column("project_id", String(40)),
    Column("invited_by", String(40), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("accepted_by", String(40)),
    Column("revoked_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_invitations_tenant", "tenant_id"),
)


wrong_guesses = Table(  # counts under keyed fingerprints, whether or not the account exists
    "wrong_guesses",
    metadata,
    Column("bucket", String(64), primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("since", BigInteger, nullable=False),
)


sign_in_addresses = Table(  # addresses of an account's latest password sign-ins, as keyed fingerprints
    "sign_in_addresses",
    metadata,
    Column("principal_id", String(40), ForeignKey("principals.id"), primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("last_at", BigInteger, nullable=False),
    Index("ix_sign_in_addresses_last", "last_at"),
)


sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("id", String(40)),
    Column("key_id", String(40)),  # the key it was opened with; the session ends when that key is retired
    Column("address", String(64)),
    Column("principal_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("idle_until", BigInteger),  # only for console sessions: moves forward while the session is used
    Column("revoked_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_sessions_expires", "expires_at"),
    Index("ix_sessions_principal", "principal_id"),
)


used_assertions = Table(
    "used_assertions",
    metadata,
    Column("principal_id", String(40), primary_key=True),
    Column("jti", String(128), primary_key=True),
    Column("expires_at", BigInteger, nullable=False),
)
