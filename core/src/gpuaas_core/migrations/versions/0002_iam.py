"""Identity and access in full: several keys per account, sessions by id, own roles, deny rules, invitations."""

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "0002_iam"
down_revision = "0001"
branch_labels = None
depends_on = None

_PRINCIPALS = sa.table(
    "principals", sa.column("id"), sa.column("public_jwk", sa.JSON), sa.column("created_at", sa.BigInteger)
)
_KEYS = sa.table(
    "principal_keys",
    sa.column("id"),
    sa.column("principal_id"),
    sa.column("public_jwk", sa.JSON),
    sa.column("created_at", sa.BigInteger),
    sa.column("retired_at", sa.BigInteger),
)


def upgrade() -> None:
    op.create_table(
        "principal_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("public_jwk", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principals.id"], name=op.f("fk_principal_keys_principal_id_principals")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_principal_keys")),
    )
    op.create_index("ix_principal_keys_principal", "principal_keys", ["principal_id"])
    _move_keys_out()
    op.drop_column("principals", "public_jwk")
    op.add_column("principals", sa.Column("deleted_at", sa.BigInteger(), nullable=True))
    op.add_column("sessions", sa.Column("id", sa.String(length=40), nullable=True))
    op.add_column("sessions", sa.Column("key_id", sa.String(length=40), nullable=True))
    op.add_column("sessions", sa.Column("address", sa.String(length=64), nullable=True))
    op.create_index("ix_sessions_principal", "sessions", ["principal_id"])
    op.execute(sa.text("update sessions set id = 'ses_' || substr(token_hash, 1, 26)"))
    op.create_table(
        "custom_roles",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("permissions", sa.JSON(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_custom_roles_tenant_id_tenants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_custom_roles")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_custom_roles_tenant_id_name")),
    )
    op.create_table(
        "deny_rules",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("scope_kind", sa.String(length=20), nullable=False),
        sa.Column("scope_id", sa.String(length=40), nullable=False),
        sa.Column("permissions", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(length=400), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deny_rules")),
    )
    op.create_index("ix_deny_rules_scope", "deny_rules", ["scope_kind", "scope_id"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("role", sa.String(length=40), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=True),
        sa.Column("invited_by", sa.String(length=40), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("accepted_by", sa.String(length=40), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_invitations_tenant_id_tenants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
    )
    op.create_index("ix_invitations_tenant", "invitations", ["tenant_id"])
    op.create_table(
        "wrong_guesses",
        sa.Column("bucket", sa.String(length=64), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("bucket", name=op.f("pk_wrong_guesses")),
    )


def downgrade() -> None:
    """The newest active key of each account becomes its only one; roles, rules and invitations are forgotten."""
    op.drop_table("wrong_guesses")
    op.drop_index("ix_invitations_tenant", "invitations")
    op.drop_table("invitations")
    op.drop_index("ix_deny_rules_scope", "deny_rules")
    op.drop_table("deny_rules")
    op.drop_table("custom_roles")
    op.drop_index("ix_sessions_principal", "sessions")
    for column in ("address", "key_id", "id"):
        op.drop_column("sessions", column)
    op.drop_column("principals", "deleted_at")
    op.add_column("principals", sa.Column("public_jwk", sa.JSON(), nullable=True))
    _move_keys_back()
    op.drop_index("ix_principal_keys_principal", "principal_keys")
    op.drop_table("principal_keys")


def _move_keys_out() -> None:
    store = op.get_bind()
    for row in store.execute(sa.select(_PRINCIPALS)).all():
        if row.public_jwk:
            key = {"id": f"key_{uuid4().hex[:26]}", "principal_id": row.id}
            store.execute(sa.insert(_KEYS).values(**key, public_jwk=row.public_jwk, created_at=row.created_at))


def _move_keys_back() -> None:
    store = op.get_bind()
    active = sa.select(_KEYS).where(_KEYS.c.retired_at.is_(None)).order_by(_KEYS.c.created_at, _KEYS.c.id)
    for key in store.execute(active).all():
        update = sa.update(_PRINCIPALS).where(_PRINCIPALS.c.id == key.principal_id)
        store.execute(update.values(public_jwk=key.public_jwk))
