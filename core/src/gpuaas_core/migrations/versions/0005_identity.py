"""Delegated grants and break-glass, which audit rows name; console sessions, OIDC; an e-mail address is unique per tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0005_identity"
down_revision = "0004_triage"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "delegations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("grantor_id", sa.String(length=40), nullable=False),
        sa.Column("grantee_id", sa.String(length=40), nullable=False),
        sa.Column("permissions", sa.JSON(), nullable=False),
        sa.Column("subject", sa.String(length=80), nullable=True),
        sa.Column("reason", sa.String(length=400), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_by", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_delegations_tenant_id_tenants")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_delegations_project_id_projects")),
        sa.ForeignKeyConstraint(["grantor_id"], ["principals.id"], name=op.f("fk_delegations_grantor_id_principals")),
        sa.ForeignKeyConstraint(["grantee_id"], ["principals.id"], name=op.f("fk_delegations_grantee_id_principals")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_delegations")),
    )
    op.create_index("ix_delegations_grantee", "delegations", ["grantee_id"])
    op.create_index("ix_delegations_project", "delegations", ["project_id"])
    op.create_table(
        "break_glass",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("mode", sa.String(length=20), nullable=False),
        sa.Column("reason", sa.String(length=400), nullable=False),
        sa.Column("ticket", sa.String(length=80), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("opened_by", sa.String(length=40), nullable=False),
        sa.Column("approved_by", sa.String(length=40), nullable=True),
        sa.Column("closed_by", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("active_at", sa.BigInteger(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_break_glass_tenant_id_tenants")),
        sa.ForeignKeyConstraint(["opened_by"], ["principals.id"], name=op.f("fk_break_glass_opened_by_principals")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_break_glass")),
    )
    op.create_index("ix_break_glass_opened_by", "break_glass", ["opened_by"])
    op.create_index("ix_break_glass_tenant", "break_glass", ["tenant_id"])
    op.create_index("ix_break_glass_state", "break_glass", ["state", "expires_at"])
    op.create_table(
        "identity_providers",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("issuer", sa.String(length=300), nullable=False),
        sa.Column("client_id", sa.String(length=200), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=True),
        sa.Column("email_domains", sa.JSON(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("default_role", sa.String(length=40), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_identity_providers_tenant_id_tenants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identity_providers")),
    )
    op.create_index("ix_identity_providers_tenant", "identity_providers", ["tenant_id"])
    op.create_table(
        "linked_identities",
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("issuer", sa.String(length=300), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("principal_id", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["principal_id"], ["principals.id"], name=op.f("fk_linked_identities_principal_id_principals")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "issuer", "subject", name=op.f("pk_linked_identities")),
    )
    op.create_index("ix_linked_identities_principal", "linked_identities", ["principal_id"])
    op.create_table(
        "sign_in_attempts",
        sa.Column("state_hash", sa.String(length=64), nullable=False),
        sa.Column("provider_id", sa.String(length=40), nullable=False),
        sa.Column("binder_hash", sa.String(length=64), nullable=False),
        sa.Column("cli_challenge", sa.String(length=64), nullable=True),
        sa.Column("cli_port", sa.Integer(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("code_hash", sa.String(length=64), nullable=True),
        sa.Column("principal_id", sa.String(length=40), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["provider_id"], ["identity_providers.id"], name=op.f("fk_sign_in_attempts_provider_id_identity_providers")
        ),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_sign_in_attempts")),
    )
    op.create_index("ix_sign_in_attempts_code", "sign_in_attempts", ["code_hash"])
    op.create_index("ix_sign_in_attempts_expires", "sign_in_attempts", ["expires_at"])
    with op.batch_alter_table("principals") as batch_op:
        batch_op.drop_constraint(op.f("uq_principals_email"), type_="unique")
        batch_op.create_unique_constraint(op.f("uq_principals_tenant_id_email"), ["tenant_id", "email"])
        batch_op.create_index("ix_principals_email", ["email"])
    op.add_column("sessions", sa.Column("idle_until", sa.BigInteger(), nullable=True))
    op.add_column("audit", sa.Column("via", sa.String(length=40), nullable=True))
    op.add_column("audit", sa.Column("on_behalf_of", sa.String(length=40), nullable=True))


def downgrade() -> None:
    """The contents of the two columns are lost, and the hashes of rows that used them no longer match.

    Fails while an e-mail address has accounts in several tenants: rename those first.
    """
    for column in ("on_behalf_of", "via"):
        op.drop_column("audit", column)
    for table in ("sign_in_attempts", "linked_identities", "identity_providers"):
        op.drop_table(table)
    op.drop_column("sessions", "idle_until")
    with op.batch_alter_table("principals") as batch_op:
        batch_op.drop_index("ix_principals_email")
        batch_op.drop_constraint(op.f("uq_principals_tenant_id_email"), type_="unique")
        batch_op.create_unique_constraint(op.f("uq_principals_email"), ["email"])
    op.drop_table("break_glass")
    op.drop_table("delegations")
