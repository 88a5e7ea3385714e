"""Reads tables in pages with cursors, in the order of their ids, which is the order of creation (ids.py).

A row that exists during the whole listing is returned exactly once. A row that is created meanwhile may belong on a
page that was read already: lists carry the event sequence they were read at, and the stream from there has its event.
One more row than the limit is read, to know whether there is a next page.
"""

from typing import TypeVar, overload

from sqlalchemy import Column, Connection

from .problems import Problem
from .rows import AnyRow, Query, RawRow, Statement
from .wire import decode_cursor, encode_cursor

R = TypeVar("R", bound=AnyRow)


class BadCursor(Problem):
    status, code, title = 400, "cursor_invalid", "Invalid cursor"
    way_out = "Start again without `cursor`."


@overload
def page_of(
    tx: Connection,
    query: Query[R],
    id_column: Column[str],
    *,
    limit: int,
    cursor: str | None,
    newest_first: bool = False,
) -> tuple[list[R], str | None]: ...


@overload
def page_of(
    tx: Connection,
    query: Statement,
    id_column: Column[str],
    *,
    limit: int,
    cursor: str | None,
    newest_first: bool = False,
) -> tuple[list[RawRow], str | None]: ...


def page_of(
    tx: Connection,
    query: Query[R] | Statement,
    id_column: Column[str],
    *,
    limit: int,
    cursor: str | None,
    newest_first: bool = False,
) -> tuple[list[R] | list[RawRow], str | None]:
    """Return the rows of one page and the cursor of the next page (None after the last one). The query must select the
    id column."""
    kind = id_column.table.name
    after = _decode(cursor, kind) if cursor else None
    if isinstance(query, Query):
        rows = query.page(id_column, limit + 1, after, newest_first=newest_first).all(tx)
    else:
        if after is not None:
            query = query.where(id_column < after if newest_first else id_column > after)
        query = query.order_by(id_column.desc() if newest_first else id_column).limit(limit + 1)
        rows = list(tx.execute(query))
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], _encode(kind, str(getattr(rows[limit - 1], id_column.key)))


def _encode(kind: str, last: str) -> str:
    return encode_cursor(f"{kind} {last}")


def _decode(cursor: str, kind: str) -> str:
    """Return the id at which the previous page ended; raise BadCursor if the cursor is invalid.

    The cursor of another list is rejected, since it would silently return a wrong page.
    """
    try:
        made_for, _, last = decode_cursor(cursor).partition(" ")
    except ValueError:
        raise BadCursor("The cursor was not issued by this platform.") from None
    if made_for != kind:
        raise BadCursor("The cursor was issued for another list.")
    return last
