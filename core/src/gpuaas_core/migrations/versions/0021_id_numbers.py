"""Ids sort by a number of the store: a sequence on PostgreSQL, a row on SQLite, both above every id made until now."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0021_id_numbers"
down_revision = "0020_operators"
branch_labels = None
depends_on = None

_FACTS = sa.table("store_facts", sa.column("name", sa.String), sa.column("value", sa.Text))


def upgrade() -> None:
    # An older id begins with 48 bits of milliseconds and 16 random bits.
    first = (time.time_ns() // 1_000_000 + 1) << 16
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sa.schema.CreateSequence(sa.Sequence("id_number", start=first)))
    else:
        op.execute(sa.insert(_FACTS).values(name="id_number", value=str(first)))


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(sa.schema.DropSequence(sa.Sequence("id_number")))
    else:
        op.execute(sa.delete(_FACTS).where(_FACTS.c.name == "id_number"))
