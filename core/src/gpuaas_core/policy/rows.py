"""The row of a policy: immutable, with a typed id."""

from dataclasses import dataclass
from typing import NewType

PolicyId = NewType("PolicyId", str)


@dataclass(frozen=True)
class PolicyRow:
    """The columns of `tables.policies`, in their order. `rules` and `enables` are JSON text."""

    id: PolicyId
    scope_kind: str
    scope_id: str
    name: str
    rules: str
    enables: str | None
    reason: str
    revision: int
    updated_by: str
    created_at: int
    updated_at: int
