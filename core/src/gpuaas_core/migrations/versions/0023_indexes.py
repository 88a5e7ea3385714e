"""Indexes for what housekeeping and lists ask for, so that their cost does not grow with the tables."""

import sqlalchemy as sa
from alembic import op

revision = "0023_indexes"
down_revision = "0022_sign_in_addresses"
branch_labels = None
depends_on = None

PLAIN = [
    ("ix_events_subject", "events", ["tenant_id", "subject", "sequence"]),
    ("ix_instances_last_operation", "instances", ["last_operation_id"]),
    ("ix_members_allocation", "members", ["allocation_id"]),
    ("ix_members_last_operation", "members", ["last_operation_id"]),
    ("ix_nodes_certified_until", "nodes", ["host_certified_until"]),
    ("ix_nodes_tenant", "nodes", ["tenant_id", "id"]),
]
PARTIAL = [
    ("ix_allocations_expiry", "allocations", ["expires_at"], "state <> 'released'"),
    ("ix_principal_keys_retired", "principal_keys", ["retired_at"], "generation is not null"),
    ("ix_seen_requests_old", "seen_requests", ["at"], "kept_for is null"),
]


def upgrade() -> None:
    for name, table, columns in PLAIN:
        op.create_index(name, table, columns)
    for name, table, columns, where in PARTIAL:
        op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
    op.drop_index("ix_seen_requests_at", table_name="seen_requests")


def downgrade() -> None:
    op.create_index("ix_seen_requests_at", "seen_requests", ["at"])
    for name, table, *_ in reversed([*PLAIN, *PARTIAL]):
        op.drop_index(name, table_name=table)
