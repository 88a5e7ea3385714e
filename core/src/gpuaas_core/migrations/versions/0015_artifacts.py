"""Artifacts: sources, what is registered, what was pushed, what is being delivered."""

import sqlalchemy as sa
from alembic import op

revision = "0015_artifacts"
down_revision = "0014_ssh_authorities"
branch_labels = None
depends_on = None


def upgrade() -> None:
    sources = op.create_table(
        "artifact_sources",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("policy_name", sa.String(length=63), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("private_addresses", sa.Integer(), nullable=False),
        sa.Column("open_to_tenants", sa.Integer(), nullable=False),
        sa.Column("credential_kind", sa.String(length=10), nullable=True),
        sa.Column("sealed_credential", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact_sources")),
    )
    op.create_index("ix_artifact_sources_host", "artifact_sources", ["owner", "host"])
    op.create_index(
        "uq_artifact_sources_live_name",
        "artifact_sources",
        ["policy_name"],
        unique=True,
        sqlite_where=sa.text("state <> 'removed'"),
        postgresql_where=sa.text("state <> 'removed'"),
    )
    # The core's own store is a source like any other: it can be disabled, and policies can deny it.
    builtin = {
        "id": "asrc_builtin",
        "owner": "platform",
        "name": "builtin",
        "policy_name": "builtin",
        "kind": "store",
        "base_url": "",
        "host": "",
        "private_addresses": 0,
        "open_to_tenants": 1,
        "state": "enabled",
        "created_by": "platform",
        "created_at": 0,
    }
    op.bulk_insert(sources, [builtin])
    op.create_table(
        "artifacts",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("source_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("version", sa.String(length=60), nullable=False),
        sa.Column("kind", sa.String(length=10), nullable=False),
        sa.Column("reference", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.String(length=120), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn_at", sa.BigInteger(), nullable=True),
        sa.Column("withdraw_reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["source_id"], ["artifact_sources.id"], name=op.f("fk_artifacts_source_id_artifact_sources")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifacts")),
        sa.UniqueConstraint("owner", "name", "version", name=op.f("uq_artifacts_owner_name_version")),
    )
    op.create_index("ix_artifacts_source", "artifacts", ["source_id"])
    op.create_index("ix_artifacts_content", "artifacts", ["owner", "sha256"])
    op.create_table(
        "artifact_blobs",
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "sha256", name=op.f("pk_artifact_blobs")),
    )
    op.create_index("ix_artifact_blobs_content", "artifact_blobs", ["sha256"])
    op.create_table(
        "artifact_deliveries",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("artifact_id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("node_id", sa.String(length=40), nullable=False),
        sa.Column("task_id", sa.String(length=40), nullable=True),
        sa.Column("app_slug", sa.String(length=40), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("fetches", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["artifact_id"], ["artifacts.id"], name=op.f("fk_artifact_deliveries_artifact_id_artifacts")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_artifact_deliveries")),
    )
    op.create_index("ix_artifact_deliveries_task", "artifact_deliveries", ["task_id"])
    op.create_index("ix_artifact_deliveries_expiry", "artifact_deliveries", ["expires_at"])


def downgrade() -> None:
    for table in ("artifact_deliveries", "artifact_blobs", "artifacts", "artifact_sources"):
        op.drop_table(table)
