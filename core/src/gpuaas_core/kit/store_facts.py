"""The table of facts about the database itself, for example the last transaction number for ids on SQLite
(numbers.py)."""

from sqlalchemy import Column, String, Table, Text

from .db import metadata

store_facts = Table(
    "store_facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
