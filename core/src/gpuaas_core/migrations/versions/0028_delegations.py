"""An index of the delegations that are not revoked, so that one row says whether a principal holds any."""

import sqlalchemy as sa
from alembic import op

revision = "0028_delegations"
down_revision = "0027_live_operations"
branch_labels = None
depends_on = None

NAME, VALID = "ix_delegations_grantee_expiry", sa.text("revoked_at is null")


def upgrade() -> None:
    op.create_index(NAME, "delegations", ["grantee_id", "expires_at"], sqlite_where=VALID, postgresql_where=VALID)


def downgrade() -> None:
    op.drop_index(NAME, table_name="delegations")
