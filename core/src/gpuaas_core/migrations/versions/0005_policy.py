"""Catalog and policy: the life of app versions."""

import sqlalchemy as sa
from alembic import op

revision = "0005_policy"
down_revision = "0004_triage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("app_versions", sa.Column("state", sa.String(length=20), nullable=False, server_default="draft"))
    op.add_column("app_versions", sa.Column("state_reason", sa.Text(), nullable=True))
    op.execute(sa.text("update app_versions set state = 'published' where published_at is not null"))


def downgrade() -> None:
    """What was deprecated is published again, and what was withdrawn is a draft again: it deploys neither way."""
    op.execute(sa.text("update app_versions set published_at = null where state = 'withdrawn'"))
    op.drop_column("app_versions", "state_reason")
    op.drop_column("app_versions", "state")
