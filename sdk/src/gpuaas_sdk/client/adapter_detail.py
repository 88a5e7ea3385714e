"""Typed access to the parts of `adapter_detail` that all apps share (contracts/adapter-detail.schema.json).

Apps write `adapter_detail` freely: a value of the wrong type counts as missing, and list items of the wrong type are
skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import TypeVar, Union, cast, get_args, get_origin

import msgspec

from .generated_adapter_detail import AdapterDetail
from .request import JsonObject

S = TypeVar("S", bound=msgspec.Struct)


def read_adapter_detail(detail: JsonObject | None) -> AdapterDetail:
    return _read(AdapterDetail, detail or {})


def _read(kind: type[S], values: JsonObject) -> S:
    known = {field.name: _fitting(field.type, values.get(field.encode_name)) for field in msgspec.structs.fields(kind)}
    return kind(**known)


def _fitting(kind: object, value: object) -> object:
    """Return the value if it has the expected type, otherwise None."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(option for option in get_args(kind) if option is not NoneType)
    if get_origin(kind) is list and isinstance(value, list):
        items = (_fitting(get_args(kind)[0], item) for item in cast(list[object], value))
        return [item for item in items if item is not None]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _read(kind, cast(JsonObject, value)) if isinstance(value, Mapping) else None
    try:
        return msgspec.convert(value, cast(type[object], kind))
    except msgspec.ValidationError:
        return None
