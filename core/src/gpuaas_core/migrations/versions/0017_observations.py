"""Access grants have a purpose: an operation, or an observation of a running instance."""

import sqlalchemy as sa
from alembic import op

revision = "0017_observations"
down_revision = "0016_single_use"
branch_labels = None
depends_on = None


def upgrade() -> None:
    purpose = sa.Column("purpose", sa.String(length=20), nullable=False, server_default="operation")
    op.add_column("access_grants", purpose)


def downgrade() -> None:
    op.drop_column("access_grants", "purpose")
