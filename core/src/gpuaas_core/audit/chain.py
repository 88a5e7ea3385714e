"""The chain of audit rows, one per tenant:
the hash of each row covers the row's fields and the hash of the previous row.

A row is appended while the tenant's counter row is locked (`audit_log.append`), so two writers cannot fork the chain. A
chain alone does not prove that its end was not removed or that it was not rewritten completely. Signed checkpoints
outside the database (`audit/checkpoints.py`) prove this, and `audit/verify.py` checks both.
"""

import hashlib
from collections.abc import Mapping

from ..counters.reads import GENESIS
from ..kit.wire import canonical
from .tables import audit

FIELDS = tuple(column.name for column in audit.columns if column.name != "hash")

__all__ = ["FIELDS", "GENESIS", "link"]


def link(previous: str, row: Mapping[str, object]) -> str:
    """Return the hash of a row that follows the hash `previous`. Null fields are omitted, so that a column added later
    does not change the hashes of older rows."""
    fields = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return hashlib.sha256(canonical({"previous": previous, "row": fields}).encode()).hexdigest()
