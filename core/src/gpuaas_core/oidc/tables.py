"""Tables of identity providers, of the users linked to them, and of sign-in attempts."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, String, Table

from ..kit.db import metadata

identity_providers = Table(
    "identity_providers",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("name", String(120), nullable=False),
    Column("issuer", String(300), nullable=False),
    Column("client_id", String(200), nullable=False),
    Column("sealed_secret", LargeBinary),
    Column("email_domains", JSON, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("default_role", String(40)),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_identity_providers_tenant", "tenant_id"),
)


linked_identities = Table(  # per tenant: a provider authenticates only users of the tenant that trusts it
    "linked_identities",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("issuer", String(300), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("principal_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_linked_identities_principal", "principal_id"),
)


sign_in_attempts = Table(  # through an identity provider: each works once and expires after minutes
    "sign_in_attempts",
    metadata,
    Column("state_hash", String(64), primary_key=True),
    Column("provider_id", String(40), ForeignKey("identity_providers.id"), nullable=False),
    Column("binder_hash", String(64), nullable=False),
    Column("cli_challenge", String(64)),
    Column("cli_port", Integer),
    Column("used_at", BigInteger),
    Column("code_hash", String(64)),
    Column("principal_id", String(40)),
    Column("expires_at", BigInteger, nullable=False),
    Index("ix_sign_in_attempts_code", "code_hash"),
    Index("ix_sign_in_attempts_expires", "expires_at"),
)
