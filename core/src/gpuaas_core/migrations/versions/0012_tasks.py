"""Tasks of nodes, and the state of wipes."""

import sqlalchemy as sa
from alembic import op

revision = "0012_tasks"
down_revision = "0011_credentials"
branch_labels = None
depends_on = None

_LIVE = sa.text("ended_at is null")


def upgrade() -> None:
    op.create_table(
        "node_tasks",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("node_id", sa.String(length=40), nullable=False),
        sa.Column("allocation_id", sa.String(length=40), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("operation_id", sa.String(length=40), nullable=True),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("idempotent", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("asked_by", sa.String(length=40), nullable=False),
        sa.Column("correlation_id", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_node_tasks_node_id_nodes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node_tasks")),
    )
    op.create_index("ix_node_tasks_node", "node_tasks", ["node_id", "id"])
    op.create_index("ix_node_tasks_operation", "node_tasks", ["operation_id", "id"])
    op.create_index("ix_node_tasks_ended", "node_tasks", ["ended_at"])
    op.create_index("ix_node_tasks_live", "node_tasks", ["node_id", "id"], sqlite_where=_LIVE, postgresql_where=_LIVE)
    op.create_index("ix_node_tasks_due", "node_tasks", ["deadline_at"], sqlite_where=_LIVE, postgresql_where=_LIVE)

    op.add_column("nodes", sa.Column("tasks_at", sa.BigInteger(), nullable=True))
    op.add_column("allocations", sa.Column("wipe", sa.String(length=20), nullable=True))


def downgrade() -> None:
    """A machine that waits for a wipe frees itself then as before: when it next says what it trusts."""
    op.drop_column("allocations", "wipe")
    op.drop_column("nodes", "tasks_at")
    op.drop_table("node_tasks")
