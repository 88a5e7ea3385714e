"""What the benchmarks of the API share: a small HTTP client, server processes, CPU time, and rows copied by SQL."""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from gpuaas_core.kit.db import Database, metadata
from gpuaas_core.kit.json_types import JsonValue

CLIENTS = 8


class Client:
    """One kept-alive connection; as little HTTP as possible, so that the client takes little of the server's time."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(
        self, method: str, path: str, token: str, body: JsonValue = None, *, expect: tuple[int, ...] = (200,)
    ) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer {token}\r\n"
        if body is not None:
            head += f"Idempotency-Key: {secrets.token_hex(16)}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(content)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + content)
        answered = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((int(line[15:]) for line in answered.split("\r\n") if line.startswith("content-length:")), 0)
        text = await self.reader.readexactly(length)
        assert int(answered[9:12]) in expect, f"{method} {path}: {answered}{text.decode()[:2000]}"
        return text


class Server:
    """A process and its store."""

    def __init__(self, name: str, argv: list[str], folder: Path, port: int, env: dict[str, str]) -> None:
        self.name, self.argv, self.folder, self.port, self.env = name, argv, folder, port, env
        self.free: list[str] = []  # allocations on which nothing was deployed yet
        self.process: subprocess.Popen[bytes] | None = None

    def spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(self.argv, env=os.environ | self.env, stdout=log, stderr=log)

    async def start(self) -> None:
        self.process = process = self.spawn()
        for _ in range(1200):
            assert process.poll() is None, self.log.read_text()
            with contextlib.suppress(OSError):
                async with Client(self.port):
                    return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{self.name} does not listen")

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process:
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    @property
    def cpu(self) -> float:
        assert self.process is not None
        return cpu_of(self.process.pid)

    @property
    def queued_s(self) -> float:
        """Seconds that the process's first thread, which runs the event loop, was ready and waited for a CPU."""
        assert self.process is not None
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9

    async def ask_many(self, size: int, ask: Callable[[Client, int], Awaitable[object]]) -> None:
        """So many requests, from several clients at once."""
        todo = iter(range(size))

        async def work() -> None:
            async with Client(self.port) as client:
                for number in todo:
                    await ask(client, number)

        await asyncio.gather(*(work() for _ in range(CLIENTS)))


def cpu_of(pid: int) -> float:
    """CPU seconds of all threads of a process, from the scheduler's counters."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


def cpu_below(pid: int | None) -> float:
    """CPU seconds of the children of a process: of PostgreSQL's, those that live."""
    if pid is None:
        return 0.0
    used = 0.0
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):
            used += cpu_of(int(child))
    return used


@contextlib.contextmanager
def opened(url: str) -> Iterator[Database]:
    db = Database(url)
    try:
        yield db
    finally:
        db.close()


def copy_rows(db: Database, table: str, like: str | None, first: int, end: int, changes: Mapping[str, str]) -> None:
    """Insert copies of one row, numbered `n` from `first` to below `end`.

    `like` is the condition that selects the row to copy, with ORDER BY and LIMIT where needed; `changes` are SQL
    expressions of `n` by column, valid on SQLite and PostgreSQL (`n` is an integer, so `/` rounds down). Without `like`
    the other columns get their default.
    """
    if first >= end:
        return
    columns = [column.name for column in metadata.tables[table].columns if like or column.name in changes]
    values = ", ".join(f"({changes[name]})" if name in changes else f"t.{name}" for name in columns)
    series = f"with recursive series(n) as (select {first} union all select n + 1 from series where n + 1 < {end})"
    if not db.is_sqlite:
        series = f"with series(n) as (select generate_series({first}, {end - 1}))"
    row = f"(select * from {table} where {like})" if like else "(select 1)"
    with db.engine.begin() as tx:
        names = ", ".join(columns)
        if not db.is_sqlite:
            tx.exec_driver_sql("set local statement_timeout = 0")
        tx.exec_driver_sql(f"insert into {table} ({names}) {series} select {values} from series, {row} t")


def analyse(db: Database) -> None:
    """PostgreSQL does this by itself some time after so many new rows; SQLite never does."""
    if not db.is_sqlite:
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("vacuum analyze")
