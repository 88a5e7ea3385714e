"""A claim in a project finds queued and running operations by indexes that hold no ended ones."""

import sqlalchemy as sa
from alembic import op

revision = "0027_live_operations"
down_revision = "0026_holders"
branch_labels = None
depends_on = None

QUEUED, RUNNING = sa.text("status = 'queued'"), sa.text("status = 'running'")
INDEXES = {
    "ix_operations_queued_delays": (["scope_id", "app_slug", "not_before"], QUEUED),
    "ix_operations_running_holder": (["scope_id", "app_slug", "claimant_id", "claimed_by"], RUNNING),
    "ix_operations_running_leases": (["scope_id", "app_slug", "lease_expires_at"], RUNNING),
}


def upgrade() -> None:
    for name, (columns, live) in INDEXES.items():
        op.create_index(name, "operations", columns, sqlite_where=live, postgresql_where=live)


def downgrade() -> None:
    for name in INDEXES:
        op.drop_index(name, table_name="operations")
