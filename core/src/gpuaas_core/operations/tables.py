"""The table of operations. A row names its target by kind and id; `details` has further fields of the target's room.

Locks: operations that may not run at the same time have the same `lock_key`. An operation holds its key either
exclusively (`lock_shared` 0: no other live operation has the key) or shared (`lock_shared` 1: other shared operations
may be live). Unique indexes prevent two live operations of one target, and two exclusive operations with one key. That
an exclusive operation does not start beside shared ones is checked by `queue.queue`, under the lock of the target.
"""

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, String, Table, Text, literal_column, text

from ..kit.db import metadata

# As literals in the SQL, not as parameters: otherwise SQLite does not use the partial indexes below.
QUEUED, RUNNING = literal_column("'queued'", String), literal_column("'running'", String)
_LIVE = text("status in ('queued', 'running')")
_EXCLUSIVE = text("status in ('queued', 'running') and lock_shared = 0")
_QUEUED = text("status = 'queued'")
_RUNNING = text("status = 'running'")

operations = Table(
    "operations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("target_kind", String(40), nullable=False),
    Column("target_id", String(40), nullable=False),
    Column("lock_key", String(80), nullable=False),
    Column("lock_shared", Integer, nullable=False),
    Column("scope_kind", String(20), nullable=False),
    Column("scope_id", String(40), nullable=False),
    Column("tenant_id", String(40)),
    Column("payer_id", String(40), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("app_slug", String(40), nullable=False),
    Column("version", String(40), nullable=False),
    Column("assigned_to", String(40)),  # the only service account that may claim it; none: each that has the key
    Column("turn", BigInteger, nullable=False),  # its place in the queue of its app, fair between tenants
    Column("status", String(20), nullable=False),
    Column("phase", String(80), nullable=False),
    Column("step", Integer, nullable=False),
    Column("steps", Integer, nullable=False),
    Column("furthest_step", Integer, nullable=False),
    Column("message", Text, nullable=False),
    Column("error", JSON),
    Column("adapter_detail", JSON),
    Column("evidence", JSON),
    Column("attempts", Integer, nullable=False),
    Column("claim_epoch", BigInteger, nullable=False),
    Column("claimed_by", String(120)),
    Column("claimant_id", String(40)),
    Column("lease_expires_at", BigInteger),
    Column("not_before", BigInteger, nullable=False),
    Column("cancel_requested", Integer, nullable=False),
    Column("retry_of", String(40)),
    Column("batch_id", String(40)),
    Column("from_state", String(20)),  # of the target, to go back to when nothing was done
    Column("params", JSON),
    Column("details", JSON),  # what the target's room keeps with it; the engine does not read it
    Column("deadline_at", BigInteger),
    Column("expected_phase_s", Integer),
    Column("progressed_at", BigInteger),
    Column("stuck_reason", String(40)),
    Column("stuck_since", BigInteger),
    Column("correlation_id", String(128), nullable=False),
    Column("requested_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Index("ix_operations_scope", "scope_id", "id"),
    Index("ix_operations_app", "scope_id", "app_slug", "claimant_id"),
    Index("ix_operations_lock", "lock_key", "id"),
    Index("ix_operations_target", "target_id", "id"),
    Index("ix_operations_correlation", "correlation_id"),
    Index("ix_operations_status", "status", "finished_at"),
    Index("ix_operations_batch", "batch_id"),
    # What a claim reads: only rows that wait or run, however many have ended.
    Index(
        "ix_operations_queued",
        "app_slug",
        "turn",
        "created_at",
        "id",
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    ),
    Index(
        "ix_operations_queued_scope",
        "scope_id",
        "app_slug",
        "turn",
        "created_at",
        "id",
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    ),
    Index(
        "ix_operations_queued_tenant",
        "app_slug",
        "tenant_id",
        "turn",
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    ),
    Index(
        "ix_operations_queued_delays",
        "scope_id",
        "app_slug",
        "not_before",
        sqlite_where=_QUEUED,
        postgresql_where=_QUEUED,
    ),
    Index(
        "ix_operations_running_holder",
        "scope_id",
        "app_slug",
        "claimant_id",
        "claimed_by",
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    ),
    Index(
        "ix_operations_running_leases",
        "scope_id",
        "app_slug",
        "lease_expires_at",
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    ),
    Index("ix_operations_leases", "lease_expires_at", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
    Index("ix_operations_claimant", "claimant_id", "claimed_by", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
    Index(
        "uq_operations_live_target",
        "target_kind",
        "target_id",
        unique=True,
        sqlite_where=_LIVE,
        postgresql_where=_LIVE,
    ),
    Index(
        "uq_operations_live_lock",
        "lock_key",
        unique=True,
        sqlite_where=_EXCLUSIVE,
        postgresql_where=_EXCLUSIVE,
    ),
)
