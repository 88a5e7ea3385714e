"""An operation on an instance or a member, as this room reads it.

Both have the instance's id as their lock key: one of the instance has it for itself, those of members share it.
"""

from dataclasses import dataclass

from ..operations.rows import OperationRow
from .states import OF_MEMBER


@dataclass(frozen=True)
class Work(OperationRow):
    @property
    def instance_id(self) -> str:
        return self.lock_key

    @property
    def member_id(self) -> str | None:
        return self.target_id if self.target_kind == OF_MEMBER else None

    @property
    def old_member_id(self) -> str | None:
        """Of a replacement: the member that goes."""
        return self._detail("old_member_id")

    @property
    def from_version(self) -> str | None:
        return self._detail("from_version")

    @property
    def to_version(self) -> str | None:
        return self._detail("to_version")

    def _detail(self, name: str) -> str | None:
        return (self.details or {}).get(name)


def work_of(operation: OperationRow) -> Work:
    return operation if isinstance(operation, Work) else Work(**vars(operation))
