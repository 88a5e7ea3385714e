"""SSH authorities that follow one another, host certificates that are renewed, access grants that can be revoked."""

# Released, so its code is not changed for the strict rules.
# pyright: standard

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014_ssh_authorities"
down_revision = "0013_node_identity"
branch_labels = None
depends_on = None

KEPT = ("tenant_id", "purpose", "public_key", "sealed_private_key", "created_at")
HOST_CERTIFICATE_MS = 30 * 24 * 3600 * 1000  # what every host certificate lived until now


def upgrade() -> None:
    _make_again(
        _taken_out(),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sealed_private_key", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("activated_at", sa.BigInteger(), nullable=True),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        key=("tenant_id", "purpose", "number"),
        more=lambda row: {"number": 1, "state": "active", "activated_at": row["created_at"]},
    )
    op.create_index(
        "uq_ssh_authorities_active",
        "ssh_authorities",
        ["tenant_id", "purpose"],
        unique=True,
        sqlite_where=sa.text("state = 'active'"),
        postgresql_where=sa.text("state = 'active'"),
    )
    for column in _grant_columns():
        op.add_column("access_grants", column)
    op.create_index("ix_access_grants_expires", "access_grants", ["expires_at"])
    op.create_index("ix_access_grants_project", "access_grants", ["project_id", "id"])
    op.add_column("nodes", sa.Column("host_authority", sa.Integer(), nullable=False, server_default="1"))
    op.add_column("nodes", sa.Column("host_certified_until", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("nodes", sa.Column("authority_generation", sa.Integer(), nullable=False, server_default="0"))
    nodes = sa.table("nodes", sa.column("created_at"), sa.column("host_certified_until"))
    op.execute(nodes.update().values(host_certified_until=nodes.c.created_at + HOST_CERTIFICATE_MS))


def downgrade() -> None:
    rows = _taken_out()
    if any(row["number"] > 1 for row in rows):
        raise RuntimeError("An SSH authority was rotated: the release before this one cannot open the new one's key.")
    for column in ("host_authority", "host_certified_until", "authority_generation"):
        op.drop_column("nodes", column)
    for index in ("ix_access_grants_expires", "ix_access_grants_project"):
        op.drop_index(index, table_name="access_grants")
    for column in _grant_columns():
        op.drop_column("access_grants", column.name)
    _make_again(
        rows,
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sealed_private_key", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        key=("tenant_id", "purpose"),
    )


def _grant_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("user_authority", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("host_authority", sa.Integer(), nullable=False, server_default="1"),
        sa.Column("source_addresses", sa.Text(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("revoke_reason", sa.Text(), nullable=True),
        sa.Column("revoked_generation", sa.Integer(), nullable=True),
    ]


def _taken_out() -> list[dict[str, Any]]:
    """All rows (two per tenant); the table is created again, because SQLite cannot change a primary key."""
    rows = op.get_bind().execute(sa.text("select * from ssh_authorities")).all()
    return [dict(row._mapping) for row in rows]


def _make_again(rows: list[dict[str, Any]], *columns: sa.Column[Any], key: tuple[str, ...], more: Any = None) -> None:
    op.drop_table("ssh_authorities")
    table = op.create_table(
        "ssh_authorities",
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("purpose", sa.String(length=10), nullable=False),
        *columns,
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_ssh_authorities_tenant_id_tenants")),
        sa.PrimaryKeyConstraint(*key, name=op.f("pk_ssh_authorities")),
    )
    kept = [{name: row[name] for name in KEPT} | (more(row) if more else {}) for row in rows]
    if kept:
        op.bulk_insert(table, kept)
