"""Table of the counters."""

from sqlalchemy import BigInteger, Column, String, Table

from ..kit.db import metadata

GENESIS = "0" * 64  # the hash before the first audit row

event_heads = Table(
    "event_heads",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("audit_sequence", BigInteger, nullable=False, server_default="0"),
    Column("audit_hash", String(64), nullable=False, server_default=GENESIS),
    Column("audit_anchored", BigInteger, nullable=False, server_default="0"),  # covered by checkpoints
)
