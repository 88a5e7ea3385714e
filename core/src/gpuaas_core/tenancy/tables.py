"""Tables of tenants and projects."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    String,
    Table,
    UniqueConstraint,
)

from ..kit.db import metadata

tenants = Table(
    "tenants",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("slug", String(40), nullable=False, unique=True),
    Column("name", String(120), nullable=False),
    Column("created_at", BigInteger, nullable=False),
)


projects = Table(
    "projects",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("slug", String(40), nullable=False),
    Column("name", String(120), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("tenant_id", "slug"),
    Index("ix_projects_tenant", "tenant_id", "id"),
)
