"""The chain of audit rows: each row's hash covers its fields and the hash before it, one chain per tenant.

The link is made under the tenant's locked counter row (`audit.append`), so writers cannot fork it. A chain alone does
not prove that its end was not removed or that it was not rewritten completely; signed checkpoints outside the database
(`audit/checkpoints.py`) do, and `audit/verify.py` checks both.
"""

import hashlib
from collections.abc import Mapping

from ..counters.reads import GENESIS
from ..kit.wire import canonical
from .tables import audit

FIELDS = tuple(column.name for column in audit.columns if column.name != "hash")

__all__ = ["FIELDS", "GENESIS", "link"]


def link(previous: str, row: Mapping[str, object]) -> str:
    """Compute the hash of a row. Null fields are omitted, so that a column added later does not change older hashes."""
    fields = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return hashlib.sha256(canonical({"previous": previous, "row": fields}).encode()).hexdigest()
