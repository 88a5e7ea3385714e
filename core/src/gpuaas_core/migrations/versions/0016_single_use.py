"""The book of delivered runtime secrets: each is given once per claim."""

import sqlalchemy as sa
from alembic import op

revision = "0016_single_use"
down_revision = "0015_artifacts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "secret_deliveries",
        sa.Column("operation_id", sa.String(length=40), nullable=False),
        sa.Column("claim_epoch", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("secret_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("delivered_at", sa.BigInteger(), nullable=False),
        sa.Column("repeatable", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "claim_epoch", "secret_id", name=op.f("pk_secret_deliveries")),
    )
    op.create_index("ix_secret_deliveries_instance", "secret_deliveries", ["instance_id"])
    op.create_index("ix_secret_deliveries_repeatable", "secret_deliveries", ["repeatable", "delivered_at"])


def downgrade() -> None:
    op.drop_table("secret_deliveries")
