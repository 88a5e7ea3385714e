"""When a node was last heard moves from the wide row of the node to a narrow table of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0025_node_contacts"
down_revision = "0024_targets"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "node_contacts",
        sa.Column("node_id", sa.String(length=40), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name=op.f("fk_node_contacts_node_id_nodes")),
        sa.PrimaryKeyConstraint("node_id", name=op.f("pk_node_contacts")),
    )
    op.execute(
        "insert into node_contacts (node_id, last_seen_at, due_at) select id, last_seen_at, last_seen_at from nodes"
    )
    op.drop_column("nodes", "last_seen_at")


def downgrade() -> None:
    op.add_column("nodes", sa.Column("last_seen_at", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        "update nodes set last_seen_at = (select c.last_seen_at from node_contacts c where c.node_id = nodes.id)"
    )
    op.drop_table("node_contacts")
