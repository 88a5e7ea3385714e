"""Connections to PostgreSQL that send all statements of a read in one message and wait on the event loop.

The pool of connections belongs to one event loop; when another loop uses the pool, it opens new connections. In libpq's
pipeline mode the statements up to a sync run in one implicit transaction. These connections are read only and use
REPEATABLE READ, so the statements see one snapshot. Each statement is prepared once per connection. A connection on
which an error occurred is closed; the caller then reads in a thread, as without this room, and reports the error if it
occurs again.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.types.json import set_json_loads
from pydantic_core import from_json

from ..kit.db import SESSION
from ..kit.prepared import RawRows

MOST = 4  # connections of one core process
LOST_MS = 35_000  # without an answer of the server's machine; longer than PostgreSQL works on a statement (SESSION)
READ_ONLY = r"-c default_transaction_isolation=repeatable\ read -c default_transaction_read_only=on"
SYNCED, ROWS, PREPARED = pq.ExecStatus.PIPELINE_SYNC, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK

Parameters: TypeAlias = Sequence[bytes | None]
Question: TypeAlias = tuple[bytes, Parameters]  # the text of a statement with $1, $2, …, and its values


class PipelineFailed(Exception):
    """Raised when not all statements were answered. The connection is closed."""


class Pipelines:
    """A pool of at most `MOST` connections, opened when they are needed."""

    def __init__(self, url: str) -> None:
        self._url = url.replace("postgresql+psycopg:", "postgresql:", 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[_Pipeline] = []
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._known: set[_Pipeline] = set()
        self._opening = 0

    async def ask(self, questions: Sequence[Question]) -> list[RawRows]:
        """Return the rows of each statement, in order. Raises PipelineFailed if not all statements were answered."""
        pipeline = self._idle.pop() if self._idle and self._loop is asyncio.get_running_loop() else await self._next()
        try:
            answers = await pipeline.ask(questions)
        except BaseException as error:
            pipeline.close()
            self._known.discard(pipeline)
            self._wake_one()
            if isinstance(error, psycopg.Error | OSError):
                raise PipelineFailed(str(error)) from error
            raise
        if pipeline in self._known:
            self._idle.append(pipeline)
            self._wake_one()
        return answers

    async def _next(self) -> "_Pipeline":
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.close()
            self._loop = loop
        while not self._idle and len(self._known) + self._opening >= MOST:
            free = loop.create_future()
            self._waiting.append(free)
            await free
        if self._idle:
            return self._idle.pop()
        self._opening += 1
        try:
            pipeline = _Pipeline(await loop.run_in_executor(None, self._connect), loop)
        except psycopg.Error as error:
            raise PipelineFailed(str(error)) from error
        finally:
            self._opening -= 1
            self._wake_one()
        self._known.add(pipeline)
        return pipeline

    def _connect(self) -> psycopg.Connection[tuple[object, ...]]:
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            options=f"{SESSION} {READ_ONLY}",
            application_name="gpuaas-core",
            connect_timeout=5,
            tcp_user_timeout=LOST_MS,
        )
        set_json_loads(from_json, connection)
        return connection

    def _wake_one(self) -> None:
        while self._waiting:
            free = self._waiting.popleft()
            if not free.done():
                free.set_result(None)
                return

    def close(self) -> None:
        """Close all connections, also those in use: their reads fail with PipelineFailed."""
        for pipeline in self._known:
            pipeline.close()
        self._known, self._idle = set(), []
        while self._waiting and self._loop and not self._loop.is_closed():
            self._wake_one()
        self._waiting.clear()


class _Pipeline:
    """One connection in pipeline mode, used by one read at a time."""

    def __init__(self, connection: psycopg.Connection[tuple[object, ...]], loop: asyncio.AbstractEventLoop) -> None:
        self._connection, self._pgconn, self._loop = connection, connection.pgconn, loop
        self._pgconn.nonblocking = 1
        self._pgconn.enter_pipeline_mode()
        self._load = Transformer.from_context(connection)
        self._names: dict[bytes, bytes] = {}  # of the statements that are prepared here
        self._results: list[pq.abc.PGresult] = []
        self._done: asyncio.Future[None] | None = None
        self._file = self._pgconn.socket
        loop.add_reader(self._file, self._readable)

    async def ask(self, questions: Sequence[Question]) -> list[RawRows]:
        send, names = self._pgconn.send_query_prepared, self._names
        for text, parameters in questions:
            name = names.get(text)
            if name is None:
                name = b"read_ahead_%d" % len(names)
                self._pgconn.send_prepare(name, text)
                names[text] = name
            send(name, parameters)
        self._pgconn.pipeline_sync()
        self._results = []
        self._done = done = self._loop.create_future()
        try:
            while self._pgconn.flush():
                await self._writable()
            await done
        finally:
            self._done = None
        answers = [self._rows(result) for result in self._results if result.status != PREPARED]
        if len(answers) != len(questions):
            raise psycopg.OperationalError("The pipeline was aborted.")
        return answers

    def _rows(self, result: pq.abc.PGresult) -> RawRows:
        if result.status != ROWS:
            raise psycopg.OperationalError(result.error_message.decode(errors="replace"))
        self._load.set_pgresult(result)
        return self._load.load_rows(0, result.ntuples, tuple)

    def _readable(self) -> None:
        try:
            self._pgconn.consume_input()
            if self._done is None or self._done.done():
                return
            between = False
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is None:
                    if between:
                        return
                    between = True  # the results of a statement end with None
                    continue
                between = False
                if result.status == SYNCED:
                    self._done.set_result(None)
                    return
                self._results.append(result)
        except psycopg.Error as error:
            self._loop.remove_reader(self._file)
            if self._done is not None and not self._done.done():
                self._done.set_exception(error)

    async def _writable(self) -> None:
        ready = self._loop.create_future()
        self._loop.add_writer(self._file, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            self._loop.remove_writer(self._file)

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._file)
            if self._done is not None and not self._done.done():
                self._done.set_exception(psycopg.OperationalError("The connection was closed."))
        self._connection.close()
