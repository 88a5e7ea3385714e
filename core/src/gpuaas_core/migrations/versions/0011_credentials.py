"""Access credentials: versions, who is bound to them, and what was delivered."""

import sqlalchemy as sa
from alembic import op

revision = "0011_credentials"
down_revision = "0010_capacity"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("overlap_ends_at", sa.BigInteger(), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("revoke_reason", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_credentials_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
    )
    op.create_index("ix_credentials_project", "credentials", ["project_id", "id"])
    op.create_index(
        "uq_credentials_live_name",
        "credentials",
        ["project_id", "name"],
        unique=True,
        sqlite_where=sa.text("state <> 'revoked'"),
        postgresql_where=sa.text("state <> 'revoked'"),
    )
    op.create_table(
        "credential_versions",
        sa.Column("credential_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("origin", sa.String(length=20), nullable=False),
        sa.Column("algorithm", sa.String(length=20), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=60), nullable=False),
        sa.Column("sealed_private_key", sa.LargeBinary(), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["credential_id"], ["credentials.id"], name=op.f("fk_credential_versions_credential_id_credentials")
        ),
        sa.PrimaryKeyConstraint("credential_id", "version", name=op.f("pk_credential_versions")),
    )
    op.create_table(
        "credential_bindings",
        sa.Column("credential_id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("bound_by", sa.String(length=40), nullable=False),
        sa.Column("bound_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["credential_id"], ["credentials.id"], name=op.f("fk_credential_bindings_credential_id_credentials")
        ),
        sa.PrimaryKeyConstraint("credential_id", "instance_id", name=op.f("pk_credential_bindings")),
    )
    op.create_index("ix_credential_bindings_instance", "credential_bindings", ["instance_id"])
    op.create_table(
        "credential_deliveries",
        sa.Column("operation_id", sa.String(length=40), nullable=False),
        sa.Column("claim_epoch", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("credential_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=False),
        sa.Column("repeatable", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["credential_id"], ["credentials.id"], name=op.f("fk_credential_deliveries_credential_id_credentials")
        ),
        sa.PrimaryKeyConstraint(
            "operation_id", "claim_epoch", "credential_id", "version", name=op.f("pk_credential_deliveries")
        ),
    )
    op.create_index("ix_credential_deliveries_credential", "credential_deliveries", ["credential_id", "instance_id"])
    op.create_index("ix_credential_deliveries_instance", "credential_deliveries", ["instance_id"])
    op.create_index("ix_credential_deliveries_repeatable", "credential_deliveries", ["repeatable", "delivered_at"])


def downgrade() -> None:
    for table in ("credential_deliveries", "credential_bindings", "credential_versions", "credentials"):
        op.drop_table(table)
