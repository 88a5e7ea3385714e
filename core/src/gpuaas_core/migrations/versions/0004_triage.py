"""Triage: log lines, spans, and operations found by their correlation id."""

import sqlalchemy as sa
from alembic import op

revision = "0004_triage"
down_revision = "0003_audit"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "log_lines",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("level", sa.String(length=10), nullable=False),
        sa.Column("source", sa.String(length=20), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("correlation_id", sa.String(length=128), nullable=False),
        sa.Column("trace_id", sa.String(length=64)),
        sa.Column("tenant_id", sa.String(length=40)),
        sa.Column("project_id", sa.String(length=40)),
        sa.Column("operation_id", sa.String(length=40)),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_log_lines")),
    )
    op.create_index("ix_log_lines_correlation", "log_lines", ["correlation_id", "at"])
    op.create_index("ix_log_lines_received", "log_lines", ["received_at"])
    op.create_table(
        "spans",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("trace_id", sa.String(length=64), nullable=False),
        sa.Column("span_id", sa.String(length=16), nullable=False),
        sa.Column("parent_id", sa.String(length=16)),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=10), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("correlation_id", sa.String(length=128), nullable=False),
        sa.Column("tenant_id", sa.String(length=40)),
        sa.Column("project_id", sa.String(length=40)),
        sa.Column("operation_id", sa.String(length=40)),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spans")),
    )
    op.create_index("ix_spans_correlation", "spans", ["correlation_id", "started_at"])
    op.create_index("ix_spans_received", "spans", ["received_at"])
    op.create_index("ix_operations_correlation", "operations", ["correlation_id"])


def downgrade() -> None:
    op.drop_index("ix_operations_correlation", "operations")
    op.drop_table("spans")
    op.drop_table("log_lines")
