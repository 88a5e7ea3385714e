"""Instances, members and operations in full: versions, batches, deadlines, stuck marks, orphan records."""

import sqlalchemy as sa
from alembic import op

revision = "0007_instances"
down_revision = "0006_signals"
branch_labels = None
depends_on = None

NEW = {
    "instances": [("requested", sa.JSON()), ("previous_version", sa.String(length=40))],
    "members": [("replaces", sa.String(length=40))],
    "operations": [
        ("batch_id", sa.String(length=40)),
        ("old_member_id", sa.String(length=40)),
        ("from_state", sa.String(length=20)),
        ("from_version", sa.String(length=40)),
        ("to_version", sa.String(length=40)),
        ("params", sa.JSON()),
        ("deadline_at", sa.BigInteger()),
        ("expected_phase_s", sa.Integer()),
        ("progressed_at", sa.BigInteger()),
        ("stuck_reason", sa.String(length=40)),
        ("stuck_since", sa.BigInteger()),
    ],
    "seen_requests": [("kept_for", sa.String(length=40))],
}


def upgrade() -> None:
    for table, columns in NEW.items():
        for name, kind in columns:
            op.add_column(table, sa.Column(name, kind))
    op.create_index("ix_operations_status", "operations", ["status", "finished_at"])
    op.create_index("ix_operations_batch", "operations", ["batch_id"])
    op.create_index("ix_seen_requests_kept_for", "seen_requests", ["kept_for"])
    op.create_table(
        "orphans",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("member_id", sa.String(length=40), nullable=False),
        sa.Column("operation_id", sa.String(length=40)),
        sa.Column("allocation_id", sa.String(length=40), nullable=False),
        sa.Column("node_id", sa.String(length=40), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("resolved_by", sa.String(length=40)),
        sa.Column("resolved_at", sa.BigInteger()),
        sa.Column("resolution", sa.Text()),
        sa.ForeignKeyConstraint(["instance_id"], ["instances.id"], name=op.f("fk_orphans_instance_id_instances")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_orphans")),
    )
    op.create_index("ix_orphans_project", "orphans", ["project_id", "id"])
    op.create_index("ix_orphans_node", "orphans", ["node_id"])
    op.create_table(
        "runtime_secrets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(length=20), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runtime_secrets")),
        sa.UniqueConstraint("instance_id", "name", "version", name=op.f("uq_runtime_secrets_instance_id_name_version")),
    )


def downgrade() -> None:
    op.drop_table("runtime_secrets")
    op.drop_table("orphans")
    op.drop_index("ix_seen_requests_kept_for", "seen_requests")
    op.drop_index("ix_operations_batch", "operations")
    op.drop_index("ix_operations_status", "operations")
    for table, columns in NEW.items():
        for name, _ in columns:
            op.drop_column(table, name)
