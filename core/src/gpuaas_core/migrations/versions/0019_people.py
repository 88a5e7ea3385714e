"""SSH access of people to nodes: their certificates name a member and the end of the last session.

Nodes get their trust again, because held ones need the principals of people.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019_people"
down_revision = "0018_departures"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("access_grants", sa.Column("member_id", sa.String(length=40)))
    op.add_column("access_grants", sa.Column("ends_at", sa.BigInteger()))
    op.create_index("ix_access_grants_ends", "access_grants", ["ends_at"])
    op.execute("update nodes set trust_generation = trust_generation + 1 where state <> 'retired'")


def downgrade() -> None:
    op.drop_index("ix_access_grants_ends", "access_grants")
    op.drop_column("access_grants", "ends_at")
    op.drop_column("access_grants", "member_id")
