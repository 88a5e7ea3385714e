"""Tables of IAM. Users, service accounts and nodes are rows of one table of principals, and have roles in the same
way."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from ..kit.db import metadata

principals = Table(
    "principals",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("name", String(120), nullable=False),
    Column("tenant_id", String(40)),
    Column("project_id", String(40)),
    Column("email", String(254)),
    Column("password_hash", Text),
    Column("disabled_at", BigInteger),
    Column("deleted_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("tenant_id", "email"),  # per tenant, so that an error cannot reveal an account of another tenant
    Index("ix_principals_tenant", "tenant_id", "kind"),
    Index("ix_principals_email", "email"),
)


custom_roles = Table(
    "custom_roles",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("permissions", JSON, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("tenant_id", "name"),
)


role_bindings = Table(
    "role_bindings",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("principal_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("role", String(40), nullable=False),
    Column("scope_kind", String(20), nullable=False),
    Column("scope_id", String(40), nullable=False),
    Column("tenant_id", String(40)),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("principal_id", "role", "scope_kind", "scope_id"),
    Index("ix_role_bindings_tenant", "tenant_id"),
)


delegations = Table(
    "delegations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("project_id", String(40), ForeignKey("projects.id"), nullable=False),  # the project it grants access to
    Column("grantor_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("grantee_id", String(40), ForeignKey("principals.id"), nullable=False),
    Column("permissions", JSON, nullable=False),
    Column("subject", String(80)),
    Column("reason", String(400), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
    Column("revoked_by", String(40)),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_delegations_grantee", "grantee_id"),
    Index("ix_delegations_grantee_project", "grantee_id", "project_id"),
    Index(
        "ix_delegations_grantee_expiry",
        "grantee_id",
        "expires_at",
        sqlite_where=text("revoked_at is null"),
        postgresql_where=text("revoked_at is null"),
    ),
    Index("ix_delegations_project", "project_id"),
)


break_glass = Table(
    "break_glass",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("mode", String(20), nullable=False),
    Column("reason", String(400), nullable=False),
    Column("ticket", String(80), nullable=False),
    Column("minutes", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("opened_by", String(40), ForeignKey("principals.id"), nullable=False),
    Column("approved_by", String(40)),
    Column("closed_by", String(40)),
    Column("created_at", BigInteger, nullable=False),
    Column("active_at", BigInteger),
    Column("expires_at", BigInteger, nullable=False),  # while awaiting approval: when the request expires
    Column("ended_at", BigInteger),
    Index("ix_break_glass_opened_by", "opened_by"),
    Index("ix_break_glass_tenant", "tenant_id"),
    Index("ix_break_glass_state", "state", "expires_at"),
)
