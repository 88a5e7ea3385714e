"""The journal in PostgreSQL, for controllers on several machines. A statement is durable when it returns.

The controller runs in one thread, so a database that hangs must not block it: the heartbeats of every operation would
stop. A statement may take `PATIENCE_S`; for `REST_S` after a failure, further statements fail at once.
"""

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row

from .store import Rows, StateAway, Value

CONNECT_S, PATIENCE_S, REST_S, CLOSES_S = 3, 4.0, 2.0, 2.0
TABLES_LOCK = 0x6770_5551  # one controller at a time creates the tables


class PostgresStore:
    def __init__(self, address: str, tables: Sequence[str], app: str) -> None:
        self.name = _display_name(address)
        self._address, self._tables, self._app = address, tables, app
        self._line = _Line(address, tables, app)
        self._rests_until, self._last = 0.0, ""
        self.execute("SELECT 1 AS here")

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        if time.monotonic() < self._rests_until:
            raise StateAway(self.name, self._last)
        try:
            return self._line.execute(statement.replace("?", "%s"), values)
        except TimeoutError as error:
            self._line.cut()
            self._line = _Line(self._address, self._tables, self._app)
            raise self._away(f"no answer within {PATIENCE_S:.0f} s") from error
        except psycopg.Error as error:
            raise self._away(str(error)) from error

    def others(self) -> str:
        """Describe the connections of other controllers to this database, found by their application name; "" if there
        are none.

        PostgreSQL still lists a connection for a moment after its client has closed it, so connections are counted
        again for `CLOSES_S` seconds before they are reported.
        """
        asked = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = ? AND datname = current_database()"
        deadline = time.monotonic() + CLOSES_S
        while True:
            (row,) = self.execute(f"{asked} AND pid <> pg_backend_pid()", (self._app,))
            if not row["n"] or time.monotonic() > deadline:
                return f"{row['n']} connections of controllers" if row["n"] else ""
            time.sleep(0.05)

    def close(self) -> None:
        self._line.close()

    def _away(self, why: str) -> StateAway:
        self._rests_until, self._last = time.monotonic() + REST_S, why
        return StateAway(self.name, why)


class _Line:
    """One database connection and the thread that waits on it. If the connection is lost, the statement is repeated on
    a new connection: a row may then exist twice, but is never lost."""

    def __init__(self, address: str, tables: Sequence[str], app: str) -> None:
        self._address, self._tables, self._app = address, tables, app
        self._connection: psycopg.Connection[DictRow] | None = None
        self._thread = ThreadPoolExecutor(1, f"{app}-state")
        self._is_cut = False

    def execute(self, statement: str, values: Sequence[Value]) -> Rows:
        return self._thread.submit(self._run, statement, values).result(PATIENCE_S)

    def cut(self) -> None:
        """Shut down the socket of the connection. This also ends a thread that still waits on the socket."""
        self._is_cut = True
        with contextlib.suppress(OSError, psycopg.Error):
            if self._connection is not None:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)
        self._thread.shutdown(wait=False)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._thread.shutdown(wait=False)

    def _run(self, statement: str, values: Sequence[Value]) -> Rows:
        was_open = self._connection is not None
        try:
            return self._ask(statement, values)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if self._is_cut or not was_open:
                raise
            return self._ask(statement, values)  # the server was restarted since the last statement

    def _ask(self, statement: str, values: Sequence[Value]) -> Rows:
        self._connection = connection = self._connection or self._connected()
        found = connection.execute(statement.encode(), values)
        return found.fetchall() if found.description else []

    def _connected(self) -> psycopg.Connection[DictRow]:
        """Open a connection and create missing tables. Prepared statements are off, so that a connection pooler can be
        used."""
        made = psycopg.Connection[DictRow].connect(
            self._address,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=None,
            connect_timeout=CONNECT_S,
            application_name=self._app,
        )
        with made.transaction():
            made.execute("SELECT pg_advisory_xact_lock(%s)", (TABLES_LOCK,))
            for table in self._tables:
                made.execute(table.encode())
        return made


def _display_name(address: str) -> str:
    try:
        parts = conninfo_to_dict(address)
    except psycopg.ProgrammingError as error:
        raise StateAway("PostgreSQL", "its address cannot be read: " + str(error).partition(":")[0]) from None
    return f"PostgreSQL {parts.get('dbname', '')} at {parts.get('host', 'this machine')}"
