"""Departure certificates: evidence of the removal of an instance or a member from a node."""

import sqlalchemy as sa
from alembic import op

revision = "0018_departures"
down_revision = "0017_observations"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "departure_certificates",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("instance_id", sa.String(length=40), nullable=False),
        sa.Column("operation_id", sa.String(length=40), nullable=False),
        sa.Column("allocation_id", sa.String(length=40), nullable=False),
        sa.Column("node_id", sa.String(length=40), nullable=False),
        sa.Column("statement", sa.JSON(), nullable=False),
        sa.Column("digest", sa.String(length=80), nullable=False),
        sa.Column("issued_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name=op.f("fk_departure_certificates_instance_id_instances")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_departure_certificates")),
    )
    op.create_index("ix_departure_certificates_project", "departure_certificates", ["project_id", "id"])
    op.create_index("ix_departure_certificates_operation", "departure_certificates", ["operation_id"])


def downgrade() -> None:
    op.drop_table("departure_certificates")
