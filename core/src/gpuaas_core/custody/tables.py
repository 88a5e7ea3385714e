"""Tables of custody. Private keys are stored only sealed."""

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, String, Table

from ..kit.db import metadata

data_keys = Table(
    "data_keys",
    metadata,
    Column("owner", String(40), primary_key=True),  # a tenant, the platform, or the root key
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("holder", String(20), nullable=False),
    Column("holder_version", String(20), nullable=False),  # of the master key that wrapped it
    Column("wrapped", LargeBinary, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
