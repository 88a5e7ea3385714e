"""Types for JSON values. They are read-only: stored JSON is replaced, never changed in place."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

JsonValue: TypeAlias = str | int | float | bool | Sequence["JsonValue"] | Mapping[str, "JsonValue"] | None
Json: TypeAlias = Mapping[str, JsonValue]


def is_object(value: object) -> TypeGuard[Json]:
    """Whether a parsed JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, list)
