"""Capacity: administrators' decisions about nodes, regions, SKUs, pools, quotas and leases."""

import sqlalchemy as sa
from alembic import op

revision = "0010_capacity"
down_revision = "0009_custody"
branch_labels = None
depends_on = None

LIVING = sa.text("state <> 'retired'")


def upgrade() -> None:
    op.add_column("enrolments", sa.Column("pool", sa.String(length=40), nullable=True))
    with op.batch_alter_table("nodes") as nodes:
        nodes.add_column(sa.Column("pool", sa.String(length=40), nullable=True))
        nodes.add_column(sa.Column("standing", sa.String(length=20), nullable=False, server_default="ready"))
        nodes.add_column(sa.Column("standing_reason", sa.Text(), nullable=True))
        nodes.drop_constraint("uq_nodes_tenant_id_name", type_="unique")
    op.execute(sa.text("update nodes set standing = state where state in ('cordoned', 'draining')"))
    op.create_index(
        "uq_nodes_living_name",
        "nodes",
        ["tenant_id", "name"],
        unique=True,
        sqlite_where=LIVING,
        postgresql_where=LIVING,
    )
    op.add_column("allocations", sa.Column("gpus", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("allocations", sa.Column("lost_after_s", sa.Integer(), nullable=True))
    op.add_column("allocations", sa.Column("expires_at", sa.BigInteger(), nullable=True))
    op.add_column("allocations", sa.Column("overdue_since", sa.BigInteger(), nullable=True))
    _create_tables()
    _count_what_is_held()


def _create_tables() -> None:
    op.create_table(
        "regions",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_regions")),
    )
    op.create_table(
        "skus",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("gpu_model", sa.String(length=80), nullable=False),
        sa.Column("gpu_count", sa.Integer(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("price_micros_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_skus")),
    )
    op.create_table(
        "pools",
        sa.Column("tenant_id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.id"], name=op.f("fk_pools_tenant_id_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "name", name=op.f("pk_pools")),
    )
    op.create_table(
        "quotas",
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("max_allocations", sa.Integer(), nullable=True),
        sa.Column("max_gpus", sa.Integer(), nullable=True),
        sa.Column("used_allocations", sa.Integer(), nullable=False),
        sa.Column("used_gpus", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_quotas_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_quotas")),
    )


def _count_what_is_held() -> None:
    """GPUs as reported by each node: there were no SKUs with GPU counts."""
    store = op.get_bind()
    allocations = sa.table("allocations", *map(sa.column, ("id", "project_id", "node_id", "state", "gpus")))
    nodes = sa.table("nodes", sa.column("id"), sa.column("facts", sa.JSON()))
    quotas = sa.table("quotas", *map(sa.column, ("project_id", "used_allocations", "used_gpus", "updated_at")))
    a = allocations.c
    held = sa.select(a.id, a.project_id, nodes.c.facts).join_from(allocations, nodes, nodes.c.id == a.node_id)
    used: dict[str, list[int]] = {}
    for row in store.execute(held.where(a.state != "released")).all():
        gpus = len(row.facts.get("gpus", []))
        store.execute(sa.update(allocations).where(a.id == row.id).values(gpus=gpus))
        used.setdefault(row.project_id, []).append(gpus)
    for project, found in used.items():
        row = {"project_id": project, "used_allocations": len(found), "used_gpus": sum(found), "updated_at": 0}
        store.execute(sa.insert(quotas).values(**row))


def downgrade() -> None:
    """Names of retired machines may have been given again, and `lost` was no state: both are made to fit."""
    for table in ("quotas", "pools", "skus", "regions"):
        op.drop_table(table)
    for column in ("overdue_since", "expires_at", "lost_after_s", "gpus"):
        op.drop_column("allocations", column)
    op.drop_index("uq_nodes_living_name", table_name="nodes")
    op.execute(sa.text("update nodes set name = id where state = 'retired'"))
    op.execute(sa.text("update nodes set state = 'unknown' where state = 'lost'"))
    with op.batch_alter_table("nodes") as nodes:
        nodes.create_unique_constraint("uq_nodes_tenant_id_name", ["tenant_id", "name"])
        nodes.drop_column("standing_reason")
        nodes.drop_column("standing")
        nodes.drop_column("pool")
    op.drop_column("enrolments", "pool")
