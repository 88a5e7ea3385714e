"""The chain of audit rows: each row's hash covers its fields and the hash before it, one chain per tenant.

The link is made under the tenant's locked counter row (`audit.append`), so writers cannot fork it. A chain alone cannot
show that its end was cut off or that all of it was written anew; for that there are signed checkpoints outside the
store (`history/checkpoints.py`), and `history/verify.py` looks at both.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from ..kit.wire import canonical
from .tables import GENESIS, audit

FIELDS = tuple(column.name for column in audit.columns if column.name != "hash")

__all__ = ["FIELDS", "GENESIS", "link"]


def link(previous: str, row: Mapping[str, Any]) -> str:
    """What is null is left out, so that a column added later does not change the hash of older rows."""
    said = {name: row[name] for name in FIELDS if row.get(name) is not None}
    return hashlib.sha256(canonical({"previous": previous, "row": said}).encode()).hexdigest()
