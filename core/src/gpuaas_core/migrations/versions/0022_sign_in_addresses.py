"""Addresses that accounts signed in from; and an index of a tenant's projects by id."""

import sqlalchemy as sa
from alembic import op

revision = "0022_sign_in_addresses"
down_revision = "0021_id_numbers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_in_addresses",
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principals.id"], name=op.f("fk_sign_in_addresses_principal_id_principals")
        ),
        sa.PrimaryKeyConstraint("principal_id", "fingerprint", name=op.f("pk_sign_in_addresses")),
    )
    op.create_index("ix_sign_in_addresses_last", "sign_in_addresses", ["last_at"])
    op.create_index("ix_projects_tenant", "projects", ["tenant_id", "id"])


def downgrade() -> None:
    op.drop_index("ix_projects_tenant", "projects")
    op.drop_index("ix_sign_in_addresses_last", "sign_in_addresses")
    op.drop_table("sign_in_addresses")
