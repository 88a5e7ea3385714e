"""Tables of artifacts. `owner` is a tenant id or `platform`; the owner's data key seals the credential in the row."""

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
    Column(
        "policy_name", String(63), nullable=False
    ),  # the source's name in policies, unique among sources that are not removed
    Column("kind", String(10), nullable=False),  # oci, blob, store
    Column("base_url", Text, nullable=False),
    Column("host", String(255), nullable=False),
    Column("port", Integer),  # set only if it is not the default
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
    Column("project_id", String(40)),  # null: delivered by the platform itself
    Column("node_id", String(40), nullable=False),
    Column("task_id", String(40)),
    Column("app_slug", String(40)),  # the entitlement whose policy applies as well
    Column("state", String(20), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("fetches", Integer, nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("received_at", BigInteger),
    Index("ix_artifact_deliveries_task", "task_id"),
    Index("ix_artifact_deliveries_expiry", "expires_at"),
)
