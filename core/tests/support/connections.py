"""Connections to the test databases, kept from one test to the next.

A new connection to PostgreSQL costs a process, an empty catalogue cache and the planning of every statement again; that
was a sixth of what a test on PostgreSQL cost.
"""

import atexit
import contextlib
from collections import defaultdict
from typing import Any

import psycopg
from gpuaas_core.kit.db import Database
from sqlalchemy import event


class Kept(psycopg.Connection[Any]):
    """Closing it keeps it for the next test that opens the same database."""

    place = ""

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.rollback()
        if self.closed or self.broken or not self.place:
            super().close()
        else:
            FREE[self.place].append(self)


FREE: defaultdict[str, list[Kept]] = defaultdict(list)


def keep(db: Database) -> None:
    engines = {"read": db._read_engine, "write": db._write_engine}  # pyright: ignore[reportPrivateUsage]
    for kind, engine in engines.items():

        @event.listens_for(engine, "do_connect")
        def connect(_dialect: Any, _record: Any, words: Any, named: Any, *, place: str = f"{kind} {db.url}") -> Any:
            return _free(place) or _new(place, *words, **named)


@atexit.register
def end() -> None:
    for free in FREE.values():
        for connection in free:
            psycopg.Connection.close(connection)
    FREE.clear()


def _free(place: str) -> Kept | None:
    while FREE[place]:
        connection = FREE[place].pop()
        try:
            connection.read_only = None
            connection.isolation_level = None
            connection.execute("select 1")
            connection.rollback()
        except psycopg.Error:  # its server process ended: a test had it killed, or restarted the server
            psycopg.Connection.close(connection)
        else:
            return connection
    return None


def _new(place: str, *words: Any, **named: Any) -> Kept:
    connection = Kept.connect(*words, **named)
    connection.place = place
    return connection
