"""An operation names its target by kind and id, and says where it is, who pays and what it excludes.

What only instances and members have (versions, the member that is replaced) goes into `details`.
"""

# Released, so its code is not changed for the strict rules.
# pyright: standard

import json

import sqlalchemy as sa
from alembic import op

revision = "0024_targets"
down_revision = "0023_indexes"
branch_labels = None
depends_on = None

LIVE = sa.text("status in ('queued', 'running')")
EXCLUSIVE = sa.text("status in ('queued', 'running') and lock_shared = 0")
QUEUED = sa.text("status = 'queued'")
RUNNING = sa.text("status = 'running'")
KEPT = ("old_member_id", "from_version", "to_version")
PARTIAL = [
    ("ix_operations_queued", ["app_slug", "turn", "created_at", "id"], QUEUED, False),
    ("ix_operations_queued_scope", ["scope_id", "app_slug", "turn", "created_at", "id"], QUEUED, False),
    ("ix_operations_queued_tenant", ["app_slug", "tenant_id", "turn"], QUEUED, False),
    ("ix_operations_leases", ["lease_expires_at"], RUNNING, False),
    ("ix_operations_claimant", ["claimant_id", "claimed_by"], RUNNING, False),
    ("uq_operations_live_target", ["target_kind", "target_id"], LIVE, True),
    ("uq_operations_live_lock", ["lock_key"], EXCLUSIVE, True),
]
WHOLE = [
    ("ix_operations_scope", ["scope_id", "id"]),
    ("ix_operations_app", ["scope_id", "app_slug", "claimant_id"]),
    ("ix_operations_lock", ["lock_key", "id"]),
    ("ix_operations_target", ["target_id", "id"]),
]
FRESH = {
    "target_kind": sa.String(40),
    "lock_key": sa.String(80),
    "lock_shared": sa.Integer(),
    "scope_kind": sa.String(20),
    "scope_id": sa.String(40),
    "payer_id": sa.String(40),
    "turn": sa.BigInteger(),
}
FORMER = {
    "project_id": sa.String(40),
    "instance_id": sa.String(40),
    "member_id": sa.String(40),
    "old_member_id": sa.String(40),
    "from_version": sa.String(40),
    "to_version": sa.String(40),
}


def upgrade() -> None:
    for name in ("uq_operations_live_target", "ix_operations_work", "ix_operations_instance"):
        op.drop_index(name, "operations")
    for name, type_ in FRESH.items():
        op.add_column("operations", sa.Column(name, type_))
    op.add_column("operations", sa.Column("assigned_to", sa.String(40)))
    op.add_column("operations", sa.Column("details", sa.JSON()))
    op.execute(
        "update operations set target_kind = case when member_id is null then 'instance' else 'member' end,"
        " lock_key = instance_id, lock_shared = case when member_id is null then 0 else 1 end,"
        " scope_kind = 'project', scope_id = project_id, payer_id = project_id, turn = 0,"
        " assigned_to = (select operator_id from instances where instances.id = operations.instance_id)"
    )
    op.execute("update operations set stuck_reason = 'unclaimed' where stuck_reason = 'nobody_claims'")
    _keep_details()
    with op.batch_alter_table("operations") as batch:
        batch.drop_constraint("fk_operations_instance_id_instances", type_="foreignkey")
        for name in FORMER:
            batch.drop_column(name)
        for name, type_ in FRESH.items():
            batch.alter_column(name, existing_type=type_, nullable=False)
        batch.alter_column("tenant_id", existing_type=sa.String(40), nullable=True)
    for name, columns in WHOLE:
        op.create_index(name, "operations", columns)
    for name, columns, where, unique in PARTIAL:
        op.create_index(name, "operations", columns, unique=unique, sqlite_where=where, postgresql_where=where)
    op.create_index("ix_delegations_grantee_project", "delegations", ["grantee_id", "project_id"])


def _keep_details() -> None:
    store = op.get_bind()
    former = sa.table("operations", sa.column("id"), *(sa.column(name) for name in KEPT))
    named = sa.or_(*(former.c[name].is_not(None) for name in KEPT))
    for row in store.execute(sa.select(former).where(named)).all():
        details = {name: row._mapping[name] for name in KEPT if row._mapping[name] is not None}
        store.execute(
            sa.text("update operations set details = :details where id = :id"),
            {"id": row.id, "details": json.dumps(details)},
        )
    fencing = "select id from operations where member_id is not null and cast(params as text) like :said"
    for row in store.execute(sa.text(fencing), {"said": '%"host_is_gone"%'}).all():
        store.execute(sa.text("update operations set lock_shared = 0 where id = :id"), {"id": row.id})


def downgrade() -> None:
    op.drop_index("ix_delegations_grantee_project", "delegations")
    for name, *_ in (*PARTIAL, *WHOLE):
        op.drop_index(name, "operations")
    for name, type_ in FORMER.items():
        op.add_column("operations", sa.Column(name, type_))
    op.execute("delete from operations where target_kind not in ('instance', 'member')")
    op.execute(
        "update operations set project_id = scope_id, instance_id = lock_key,"
        " member_id = case when target_kind = 'member' then target_id end"
    )
    op.execute("update operations set stuck_reason = 'nobody_claims' where stuck_reason = 'unclaimed'")
    store = op.get_bind()
    for row in store.execute(sa.text("select id, details from operations where details is not null")).all():
        details = json.loads(row.details) if isinstance(row.details, str) else row.details
        if details:
            former = sa.table("operations", sa.column("id"), *(sa.column(name) for name in KEPT))
            store.execute(sa.update(former).where(former.c.id == row.id).values(**details))
    with op.batch_alter_table("operations") as batch:
        for name in (*FRESH, "assigned_to", "details"):
            batch.drop_column(name)
        batch.alter_column("project_id", existing_type=sa.String(40), nullable=False)
        batch.alter_column("instance_id", existing_type=sa.String(40), nullable=False)
        batch.alter_column("tenant_id", existing_type=sa.String(40), nullable=False)
        batch.create_foreign_key("fk_operations_instance_id_instances", "instances", ["instance_id"], ["id"])
    op.create_index("ix_operations_instance", "operations", ["instance_id", "id"])
    op.create_index("ix_operations_work", "operations", ["project_id", "app_slug", "status"])
    op.create_index(
        "uq_operations_live_target",
        "operations",
        ["target_id"],
        unique=True,
        sqlite_where=LIVE,
        postgresql_where=LIVE,
    )
