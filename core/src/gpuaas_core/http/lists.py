"""Builds the pages of lists, with cursors. Each page carries the number of the newest event when it was read, so that a
client can follow the event stream from there without a gap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, overload

import msgspec
from fastapi import Query as QueryParameter
from fastapi import Response
from pydantic import BaseModel
from sqlalchemy import Column

from ..authz.context import Context
from ..events.event_log import head
from ..kit.json_types import JsonValue
from ..kit.paging import page_of
from ..kit.rows import AnyRow, Query, RawRow, Statement
from ..kit.wire import Page

T = TypeVar("T")
_ENCODER = msgspec.json.Encoder()
R = TypeVar("R", bound=AnyRow)
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="items per page")]
Cursor = Annotated[str | None, QueryParameter(max_length=200, description="`next_cursor` of the previous page")]


@overload
def page(
    ctx: Context,
    query: Query[R],
    id_column: Column[str],
    limit: int,
    cursor: str | None,
    view: Callable[[R], T],
    *,
    newest_first: bool = False,
) -> Page[T]: ...


@overload
def page(
    ctx: Context,
    query: Statement,
    id_column: Column[str],
    limit: int,
    cursor: str | None,
    view: Callable[[RawRow], T],
    *,
    newest_first: bool = False,
) -> Page[T]: ...


def page(
    ctx: Context,
    query: Query[R] | Statement,
    id_column: Column[str],
    limit: int,
    cursor: str | None,
    view: Callable[[Any], T],
    *,
    newest_first: bool = False,
) -> Page[T]:
    sequence = head(ctx.tx, ctx.scope.tenant_id) if ctx.scope.tenant_id else None
    rows, following = page_of(ctx.tx, query, id_column, limit=limit, cursor=cursor, newest_first=newest_first)
    return Page(items=[view(row) for row in rows], next_cursor=following, event_sequence=sequence)


def page_together(
    ctx: Context,
    query: Query[R],
    id_column: Column[str],
    limit: int,
    cursor: str | None,
    views: Callable[[Sequence[R]], list[T]],
    *,
    newest_first: bool = False,
) -> Page[T]:
    """Return one page of items whose views are built together: `views` receives all rows of the page at once."""
    sequence = head(ctx.tx, ctx.scope.tenant_id) if ctx.scope.tenant_id else None
    rows, following = page_of(ctx.tx, query, id_column, limit=limit, cursor=cursor, newest_first=newest_first)
    return Page(items=views(rows), next_cursor=following, event_sequence=sequence)


@dataclass(frozen=True)
class PlainPage:
    """A page whose items are plain values and JSON text instead of models. For long lists, where building a model for
    an item takes longer than reading its row."""

    items: Sequence[Mapping[str, JsonValue | msgspec.Raw]]
    next_cursor: str | None
    event_sequence: int

    def response(self) -> Response:
        return Response(_ENCODER.encode(self), media_type="application/json")


def as_response(page: BaseModel) -> Response:
    """Return the page as a JSON response directly, without the framework's second validation of the items."""
    return Response(page.model_dump_json(), media_type="application/json")
