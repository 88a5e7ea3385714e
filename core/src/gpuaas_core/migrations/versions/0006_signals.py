"""Signals: spans and lines found by their trace, and how far events were forwarded to a broker."""

import sqlalchemy as sa
from alembic import op

revision = "0006_signals"
down_revision = "0005_identity"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_log_lines_trace", "log_lines", ["trace_id"])
    op.create_index("ix_spans_trace", "spans", ["trace_id"])
    op.create_table(
        "fanout_positions",
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_fanout_positions")),
    )
    op.create_table(
        "fanout_lease",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_fanout_lease")),
    )


def downgrade() -> None:
    op.drop_table("fanout_lease")
    op.drop_table("fanout_positions")
    op.drop_index("ix_spans_trace", "spans")
    op.drop_index("ix_log_lines_trace", "log_lines")
