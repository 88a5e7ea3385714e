"""The table of policies: named overlays of the platform, a tenant, a project or an entitlement.

Only `reads.py` parses the rules.
"""

from sqlalchemy import BigInteger, Column, Integer, String, Table, Text, UniqueConstraint

from ..kit.db import metadata

policies = Table(
    "policies",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("scope_kind", String(20), nullable=False),  # platform, tenant, project, entitlement
    Column("scope_id", String(100), nullable=False),
    Column("name", String(40), nullable=False),
    Column("rules", Text, nullable=False),
    Column("enables", Text),
    Column("reason", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("updated_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("scope_kind", "scope_id", "name"),
)
