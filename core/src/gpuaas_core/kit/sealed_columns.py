"""The columns of sealed values: rooms register theirs here, so that resealing under a new data key covers all."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Row, Table


@dataclass(frozen=True)
class SealedColumn:
    table: Table
    column: Column[Any]
    tenant: Column[Any]
    bound_to: Callable[[Row[Any]], str]


SEALED: list[SealedColumn] = []


def declare_sealed(table: Table, column: str, *, tenant: str, bound_to: Callable[[Row[Any]], str]) -> None:
    SEALED.append(SealedColumn(table, table.c[column], table.c[tenant], bound_to))
