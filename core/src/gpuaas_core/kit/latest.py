"""An in-memory buffer of the latest value per key, so that one transaction can write the values of many keys.

It is for values that change often and may be lost: values that are not yet written are lost when the process ends.
"""

from typing import Generic, TypeVar

V = TypeVar("V")


class Latest(Generic[V]):
    def __init__(self) -> None:
        self._values: dict[str, V] = {}

    def note(self, key: str, value: V) -> None:
        self._values[key] = value

    def take(self) -> dict[str, V]:
        """Remove and return all values noted since the last call, in the order of their keys."""
        taken, self._values = self._values, {}
        return dict(sorted(taken.items()))

    def put_back(self, taken: dict[str, V]) -> None:
        """Put values back into the buffer after writing them failed. Newer values for the same key take precedence."""
        self._values = taken | self._values
