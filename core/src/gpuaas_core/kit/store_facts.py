"""The table of facts about the database itself: its epoch and the next id number."""

from sqlalchemy import Column, String, Table, Text

from .db import metadata

store_facts = Table(
    "store_facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
