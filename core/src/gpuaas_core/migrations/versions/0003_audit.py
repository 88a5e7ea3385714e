"""Audit rows are chained: each row's hash covers its fields and the hash before it.

Existing rows are chained here, in order. That does not prove what they were before; from now on a change is
detected. The hash function is repeated here, so that this migration never changes.
"""

# Released, so its code is not changed for the strict rules.
# pyright: standard

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0003_audit"
down_revision = "0002_iam"
branch_labels = None
depends_on = None

GENESIS = "0" * 64
PAGE = 1000


def upgrade() -> None:
    with op.batch_alter_table("event_heads") as batch_op:
        batch_op.add_column(sa.Column("audit_hash", sa.String(length=64), nullable=False, server_default=GENESIS))
        batch_op.add_column(sa.Column("audit_anchored", sa.BigInteger(), nullable=False, server_default="0"))
    with op.batch_alter_table("audit") as batch_op:
        batch_op.add_column(sa.Column("hash", sa.String(length=64), nullable=True))
    tx = op.get_bind()
    for tenant_id in tx.execute(sa.text("select tenant_id from event_heads")).scalars().all():
        _chain(tx, tenant_id)
    with op.batch_alter_table("audit") as batch_op:
        batch_op.alter_column("hash", existing_type=sa.String(length=64), nullable=False)


def _chain(tx: sa.Connection, tenant_id: str) -> None:
    page = sa.text("select * from audit where tenant_id = :t and sequence > :s order by sequence limit :n")
    fill = sa.text("update audit set hash = :hash where tenant_id = :t and sequence = :s")
    last, previous = 0, GENESIS
    while rows := tx.execute(page, {"t": tenant_id, "s": last, "n": PAGE}).mappings().all():
        hashes = []
        for row in rows:
            previous = _link(previous, {name: value for name, value in row.items() if name != "hash"})
            hashes.append({"hash": previous, "t": tenant_id, "s": row["sequence"]})
        tx.execute(fill, hashes)
        last = rows[-1]["sequence"]
    tx.execute(sa.text("update event_heads set audit_hash = :h where tenant_id = :t"), {"h": previous, "t": tenant_id})


def _link(previous: str, row: dict[str, object]) -> str:
    fields = {name: value for name, value in row.items() if value is not None}
    text = json.dumps({"previous": previous, "row": fields}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def downgrade() -> None:
    with op.batch_alter_table("audit") as batch_op:
        batch_op.drop_column("hash")
    with op.batch_alter_table("event_heads") as batch_op:
        batch_op.drop_column("audit_anchored")
        batch_op.drop_column("audit_hash")
