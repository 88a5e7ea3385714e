"""Lists: cursor pages that carry the event sequence they were read at (list, then watch, without a gap)."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Query, Response
from sqlalchemy import Select

from ..authz.context import Context
from ..events.event_log import head
from ..kit.paging import page_of
from ..kit.wire import Page

T = TypeVar("T")
Limit = Annotated[int, Query(ge=1, le=200, description="items per page")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next_cursor` of the previous page")]


def page(
    ctx: Context,
    query: Select[Any],
    id_column: Any,
    limit: int,
    cursor: str | None,
    view: Callable[[Any], T],
    *,
    newest_first: bool = False,
) -> Page[T]:
    sequence = head(ctx.tx, ctx.scope.tenant_id) if ctx.scope.tenant_id else None
    rows, following = page_of(ctx.tx, query, id_column, limit=limit, cursor=cursor, newest_first=newest_first)
    return Page(items=[view(row) for row in rows], next_cursor=following, event_sequence=sequence)


def as_response(page: Page[Any]) -> Response:
    """For long pages of large items: serialized without a second validation."""
    return Response(page.model_dump_json(), media_type="application/json")
