"""Tables of event forwarding: the position of each tenant, and the replica that has the lease."""

from sqlalchemy import BigInteger, Column, String, Table

from ..kit.db import metadata

fanout_positions = Table(
    "fanout_positions",
    metadata,
    Column("tenant_id", String(40), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
)

fanout_lease = Table(
    "fanout_lease",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("holder", String(64), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
