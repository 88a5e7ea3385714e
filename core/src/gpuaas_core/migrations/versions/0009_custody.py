"""Custody: data keys, wrapped by the holder of the master key."""

import sqlalchemy as sa
from alembic import op

revision = "0009_custody"
down_revision = "0008_policy"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "data_keys",
        sa.Column("owner", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("holder", sa.String(length=20), nullable=False),
        sa.Column("holder_version", sa.String(length=20), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "version", name=op.f("pk_data_keys")),
    )


def downgrade() -> None:
    op.drop_table("data_keys")
