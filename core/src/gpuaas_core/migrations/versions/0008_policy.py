"""Catalog and policy: the lifecycle of app versions, overlays, entitlements that expire, regions and SKUs."""

import sqlalchemy as sa
from alembic import op

revision = "0008_policy"
down_revision = "0007_instances"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("app_versions", sa.Column("state", sa.String(length=20), nullable=False, server_default="draft"))
    op.add_column("app_versions", sa.Column("state_reason", sa.Text(), nullable=True))
    op.execute(sa.text("update app_versions set state = 'published' where published_at is not null"))
    op.add_column("entitlements", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    for table in ("nodes", "enrolments"):
        op.add_column(table, sa.Column("region", sa.String(length=63), nullable=False, server_default="default"))
        op.add_column(table, sa.Column("sku", sa.String(length=63), nullable=False, server_default="unspecified"))
    op.create_table(
        "policies",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("scope_kind", sa.String(length=20), nullable=False),
        sa.Column("scope_id", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("rules", sa.Text(), nullable=False),
        sa.Column("enables", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("updated_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policies")),
        sa.UniqueConstraint("scope_kind", "scope_id", "name", name=op.f("uq_policies_scope_kind_scope_id_name")),
    )


def downgrade() -> None:
    """What only policies or an expiry refused would deploy again: entitlements with either are disabled first."""
    narrowed = "select scope_id from policies where scope_kind = 'entitlement'"
    mine = f"expires_at is not null or project_id || '/' || app_slug in ({narrowed})"
    op.execute(sa.text(f"update entitlements set enabled = 0 where {mine}"))  # noqa: S608
    op.drop_column("entitlements", "expires_at")
    op.drop_table("policies")
    for table in ("nodes", "enrolments"):
        op.drop_column(table, "sku")
        op.drop_column(table, "region")
    op.execute(sa.text("update app_versions set published_at = null where state = 'withdrawn'"))
    op.drop_column("app_versions", "state_reason")
    op.drop_column("app_versions", "state")
