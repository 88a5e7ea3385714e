"""Tables of the catalog."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, String, Table, Text, UniqueConstraint

from ..kit.db import metadata

apps = Table(
    "apps",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("slug", String(40), nullable=False, unique=True),
    Column("name", String(120), nullable=False),
    Column("description", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

app_versions = Table(
    "app_versions",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("app_slug", String(40), ForeignKey("apps.slug"), nullable=False),
    Column("version", String(40), nullable=False),
    Column("manifest", JSON, nullable=False),
    Column("state", String(20), nullable=False, server_default="draft"),
    Column("state_reason", Text),
    Column("published_at", BigInteger),  # first publication; the newest version is the default
    Column("created_at", BigInteger, nullable=False),
    UniqueConstraint("app_slug", "version"),
)

entitlements = Table(
    "entitlements",
    metadata,
    Column("project_id", String(40), ForeignKey("projects.id"), primary_key=True),
    Column("app_slug", String(40), ForeignKey("apps.slug"), primary_key=True),
    Column("enabled", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)
