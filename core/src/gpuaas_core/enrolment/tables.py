"""Tables of enrolment. The token of an invitation is computed, never stored."""

from sqlalchemy import JSON, BigInteger, Column, ForeignKey, String, Table

from ..kit.db import metadata

enrolments = Table(
    "enrolments",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("tenant_id", String(40), ForeignKey("tenants.id"), nullable=False),
    Column("node_name", String(40), nullable=False),
    Column("node_id", String(40)),  # the node to rejoin with a new identity; null for a new node
    Column("labels", JSON, nullable=False),
    Column("region", String(63), nullable=False, server_default="default"),
    Column("sku", String(63), nullable=False, server_default="unspecified"),
    Column("pool", String(40)),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_by_node", String(40)),
    Column("used_fingerprint", String(64)),
    Column("created_at", BigInteger, nullable=False),
)
