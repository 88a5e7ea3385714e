"""Instances that one named service account operates."""

import sqlalchemy as sa
from alembic import op

revision = "0020_operators"
down_revision = "0019_people"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("instances", sa.Column("operator_id", sa.String(length=40), nullable=True))


def downgrade() -> None:
    op.drop_column("instances", "operator_id")
