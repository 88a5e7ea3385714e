"""Tables of artifacts. `owner` is a tenant, or `platform`: whose tier a row belongs to, and whose data key seals."""

from sqlalchemy import (
    JSON,
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

artifact_sources = Table(
    "artifact_sources",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", String(40), nullable=False),
    Column("name", String(40), nullable=False),
    Column("policy_name", String(63), nullable=False),  # what policies call it: no other source has it while it lives
    Column("kind", String(10), nullable=False),  # oci, blob, store
    Column("base_url", Text, nullable=False),
    Column("host", String(255), nullable=False),
    Column("port", Integer),  # said apart, if it is unusual
    Column("private_addresses", Integer, nullable=False),
    Column("open_to_tenants", Integer, nullable=False),
    Column("credential_kind", String(10)),
    Column("sealed_credential", LargeBinary),
    Column("state", String(20), nullable=False),
    Column("state_reason", Text),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_artifact_sources_host", "owner", "host"),
    Index(
        "uq_artifact_sources_live_name",
        "policy_name",
        unique=True,
        sqlite_where=text("state <> 'removed'"),
        postgresql_where=text("state <> 'removed'"),
    ),
)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("owner", String(40), nullable=False),
    Column("source_id", String(40), ForeignKey("artifact_sources.id"), nullable=False),
    Column("name", String(40), nullable=False),
    Column("version", String(60), nullable=False),
    Column("kind", String(10), nullable=False),
    Column("reference", JSON, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("media_type", String(120), nullable=False),
    Column("state", String(20), nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("withdrawn_at", BigInteger),
    Column("withdraw_reason", Text),
    UniqueConstraint("owner", "name", "version"),
    Index("ix_artifacts_source", "source_id"),
    Index("ix_artifacts_content", "owner", "sha256"),
)

artifact_blobs = Table(
    "artifact_blobs",
    metadata,
    Column("owner", String(40), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_artifact_blobs_content", "sha256"),
)

artifact_deliveries = Table(
    "artifact_deliveries",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("artifact_id", String(40), ForeignKey("artifacts.id"), nullable=False),
    Column("tenant_id", String(40), nullable=False),
    Column("project_id", String(40)),  # none: what the platform itself brings
    Column("node_id", String(40), nullable=False),
    Column("task_id", String(40)),
    Column("app_slug", String(40)),  # whose entitlement narrows, too
    Column("state", String(20), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("fetches", Integer, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("received_at", BigInteger),
    Index("ix_artifact_deliveries_task", "task_id"),
    Index("ix_artifact_deliveries_expiry", "expires_at"),
)
