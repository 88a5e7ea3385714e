"""Keys of nodes have generations; a node can be readmitted with a new identity."""

import base64
import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0013_node_identity"
down_revision = "0012_tasks"
branch_labels = None
depends_on = None

KEYS = ("superseded_by", "origin", "expires_at", "thumbprint", "generation")


def upgrade() -> None:
    op.add_column("principal_keys", sa.Column("generation", sa.Integer(), nullable=True))
    op.add_column("principal_keys", sa.Column("thumbprint", sa.String(length=43), nullable=True))
    op.add_column("principal_keys", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("principal_keys", sa.Column("origin", sa.String(length=130), nullable=True))
    op.add_column("principal_keys", sa.Column("superseded_by", sa.String(length=40), nullable=True))
    op.add_column("enrolments", sa.Column("node_id", sa.String(length=40), nullable=True))
    _first_generation()


def _first_generation() -> None:
    """Keys that are there get no end: an agent that does not renew yet must not be locked out by this."""
    store = op.get_bind()
    keys = sa.table(
        "principal_keys",
        *map(sa.column, ("id", "principal_id", "generation", "thumbprint")),
        sa.column("public_jwk", sa.JSON()),
    )
    principals = sa.table("principals", sa.column("id"), sa.column("kind"))
    of_nodes = sa.select(keys.c.id, keys.c.public_jwk).join_from(
        keys, principals, principals.c.id == keys.c.principal_id
    )
    for row in store.execute(of_nodes.where(principals.c.kind == "node")).all():
        text = json.dumps(row.public_jwk, sort_keys=True, separators=(",", ":"))
        name = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        store.execute(sa.update(keys).where(keys.c.id == row.id).values(generation=1, thumbprint=name))


def downgrade() -> None:
    """Nothing here knows suspended machines: they stay locked out, and look silent until people retire them."""
    op.execute(sa.text("update nodes set state = 'unknown' where state = 'suspended'"))
    op.drop_column("enrolments", "node_id")
    for column in KEYS:
        op.drop_column("principal_keys", column)
