"""Allocations have an owner, holds name their holder by kind and id, and access grants name what they were given for."""

import sqlalchemy as sa
from alembic import op

revision = "0026_holders"
down_revision = "0025_node_contacts"
branch_labels = None
depends_on = None

NAMES = sa.String(40)


def upgrade() -> None:
    _rename_instance_of_holds()
    op.add_column("allocations", sa.Column("owner_kind", sa.String(20)))
    op.add_column("allocations", sa.Column("owner_id", NAMES))
    op.execute("update allocations set owner_kind = 'project', owner_id = project_id")
    with op.batch_alter_table("allocations") as batch:
        batch.alter_column("owner_kind", existing_type=sa.String(20), nullable=False)
        batch.alter_column("owner_id", existing_type=NAMES, nullable=False)
    op.add_column("access_grants", sa.Column("subject_kind", NAMES))
    op.add_column("access_grants", sa.Column("subject_id", NAMES))
    op.execute(
        "update access_grants set subject_kind = coalesce((select target_kind from operations where"
        " operations.id = access_grants.operation_id), 'instance'), subject_id = coalesce((select target_id from"
        " operations where operations.id = access_grants.operation_id), '') where purpose = 'operation'"
    )
    op.execute(
        "update access_grants set subject_kind = 'instance', subject_id = coalesce((select lock_key from operations"
        " where operations.id = access_grants.operation_id), '') where purpose = 'observation'"
    )
    op.execute(
        "update access_grants set subject_kind = 'member', subject_id = coalesce(member_id, '')"
        " where purpose = 'person'"
    )
    with op.batch_alter_table("access_grants") as batch:
        batch.drop_column("member_id")
        batch.alter_column("subject_kind", existing_type=NAMES, nullable=False)
        batch.alter_column("subject_id", existing_type=NAMES, nullable=False)
    op.create_index("ix_access_grants_allocation", "access_grants", ["allocation_id", "expires_at"])


def _rename_instance_of_holds() -> None:
    op.drop_index("ix_allocation_holds_instance_id", "allocation_holds")
    op.add_column("allocation_holds", sa.Column("holder_kind", NAMES))
    op.add_column("allocation_holds", sa.Column("holder_id", NAMES))
    op.execute("update allocation_holds set holder_kind = 'instance', holder_id = instance_id")
    with op.batch_alter_table("allocation_holds") as batch:
        batch.drop_constraint("fk_allocation_holds_instance_id_instances", type_="foreignkey")
        batch.drop_column("instance_id")
        batch.alter_column("holder_kind", existing_type=NAMES, nullable=False)
        batch.alter_column("holder_id", existing_type=NAMES, nullable=False)
    op.create_index("ix_allocation_holds_holder", "allocation_holds", ["holder_kind", "holder_id"])


def downgrade() -> None:
    op.drop_index("ix_access_grants_allocation", "access_grants")
    op.add_column("access_grants", sa.Column("member_id", NAMES))
    op.execute("update access_grants set member_id = subject_id where purpose = 'person'")
    with op.batch_alter_table("access_grants") as batch:
        batch.drop_column("subject_kind")
        batch.drop_column("subject_id")
    with op.batch_alter_table("allocations") as batch:
        batch.drop_column("owner_kind")
        batch.drop_column("owner_id")
    op.drop_index("ix_allocation_holds_holder", "allocation_holds")
    op.execute("delete from allocation_holds where holder_kind <> 'instance'")
    op.add_column("allocation_holds", sa.Column("instance_id", NAMES))
    op.execute("update allocation_holds set instance_id = holder_id")
    with op.batch_alter_table("allocation_holds") as batch:
        batch.drop_column("holder_kind")
        batch.drop_column("holder_id")
        batch.alter_column("instance_id", existing_type=NAMES, nullable=False)
        batch.create_foreign_key("fk_allocation_holds_instance_id_instances", "instances", ["instance_id"], ["id"])
    op.create_index("ix_allocation_holds_instance_id", "allocation_holds", ["instance_id"])
