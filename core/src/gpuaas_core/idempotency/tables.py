"""Table of idempotency keys and their answers."""

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, Text, text

from ..kit.db import metadata

seen_requests = Table(
    "seen_requests",
    metadata,
    Column("principal_id", String(40), primary_key=True),
    Column("route", String(160), primary_key=True),
    Column("scope_id", String(80), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("status", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("location", Text),
    Column("at", BigInteger, nullable=False),
    Column("kept_for", String(40)),  # the operation or batch that outlives the usual retention
    Index("ix_seen_requests_kept_for", "kept_for"),
    Index(
        "ix_seen_requests_old", "at", sqlite_where=text("kept_for is null"), postgresql_where=text("kept_for is null")
    ),
)
