"""Cursor pages over tables in the order of their ids, which is the order of creation (ids.py).

A row that exists during the whole listing is returned exactly once. A row that is created meanwhile may belong on a
page that was read already: lists carry the event sequence they were read at, and the stream from there has its event.
One more row than the limit is read, to know whether there is a next page.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select

from .problems import Problem
from .wire import decode_cursor, encode_cursor


class BadCursor(Problem):
    status, code, title = 400, "cursor_invalid", "Invalid cursor"
    way_out = "Start again without `cursor`."


def page_of(
    tx: Connection, query: Select[Any], id_column: Any, *, limit: int, cursor: str | None, newest_first: bool = False
) -> tuple[Sequence[Row[Any]], str | None]:
    kind = id_column.table.name
    if cursor:
        after = _decode(cursor, kind)
        query = query.where(id_column < after if newest_first else id_column > after)
    order = id_column.desc() if newest_first else id_column
    rows = tx.execute(query.order_by(order).limit(limit + 1)).all()
    if len(rows) <= limit:
        return rows, None
    last = rows[limit - 1]._mapping[id_column]
    return rows[:limit], _encode(kind, str(last))


def _encode(kind: str, last: str) -> str:
    return encode_cursor(f"{kind} {last}")


def _decode(cursor: str, kind: str) -> str:
    """Where the previous page ended.

    A cursor of another list is rejected, since it would silently return a wrong page.
    """
    try:
        made_for, _, last = decode_cursor(cursor).partition(" ")
    except ValueError:
        raise BadCursor("The cursor was not issued by this platform.") from None
    if made_for != kind:
        raise BadCursor("The cursor was issued for another list.")
    return last
