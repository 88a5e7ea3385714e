"""What a request costs: the core next to a bare FastAPI handler that does the same SQL by hand, in one run.

For SQLite and PostgreSQL: requests/s and CPU microseconds per request (of the server process, and beside it of
PostgreSQL's processes), the ratio of the two, events/s end to end, and whether the cost stays flat when the store grows
from 1,000 to 100,000 operations. Rounds of the two servers are interleaved and the median counts: seconds belong to the
machine, the ratios are what the gate looks at (2.0 for reads, 2.5 for mutations, ±20 % for growth).

    python bench/api.py [--database sqlite] [--rounds 5] [--size 200] [--no-gate]
"""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATABASES = ("sqlite", "postgresql")
SMALL, LARGE = 1_000, 100_000
MOST = {"read": 2.0, "mutation": 2.5}
FLAT = 0.20
CLIENTS = 8


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--database", choices=DATABASES)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--size", type=int, default=200, help="requests per round")
    options.add_argument("--gate", action=argparse.BooleanOptionalAction, default=True)
    chosen = options.parse_args()
    if chosen.database is None:
        words = [word for word in sys.argv[1:] if not word.startswith("--database")]
        return max(_again(name, words) for name in DATABASES)
    os.environ["GPUAAS_TEST_DATABASE"] = chosen.database
    return _one_database(chosen.database, chosen.rounds, chosen.size, gate=chosen.gate)


def _again(database: str, words: list[str]) -> int:
    argv = [sys.executable, __file__, "--database", database, *words]
    return subprocess.run(argv, check=False).returncode


def _one_database(name: str, rounds: int, size: int, *, gate: bool) -> int:
    sys.path.insert(0, str(ROOT))
    import structlog

    from core.tests.support import postgres

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))

    cluster = postgres.Cluster() if postgres.CHOSEN else None
    folder = Path(tempfile.mkdtemp(prefix="gpuaas-bench-"))
    try:
        if cluster:
            cluster.start()
        bench = Bench(folder, rounds, size, cluster.process.pid if cluster and cluster.process else None)
        print(f"\n━━ {name}", flush=True)
        return 0 if asyncio.run(bench.run()) or not gate else 1
    finally:
        if cluster:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


# ── what is asked


@dataclass
class Case:
    name: str
    kind: str
    run: Callable[["Server", int], Awaitable[None]]


@dataclass
class Measured:
    rate: float
    micros: float
    database: float


class Client:
    """One kept-alive connection; the least HTTP that works, so that the client does not take the server's time."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> "Client":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, method: str, path: str, token: str, body: Any = None, *, expect: int = 200) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer {token}\r\n"
        if body is not None:
            head += f"Idempotency-Key: {secrets.token_hex(16)}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(content)}\r\n"
        self.writer.write(head.encode() + b"\r\n" + content)
        answered = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((int(line[15:]) for line in answered.split("\r\n") if line.startswith("content-length:")), 0)
        text = await self.reader.readexactly(length)
        assert int(answered[9:12]) == expect, answered + text.decode()[:2000]
        return text


class Server:
    """One of the two: a process, its store, and the allocations nothing was deployed on yet."""

    def __init__(self, name: str, argv: list[str], folder: Path, port: int, env: dict[str, str]) -> None:
        self.name, self.argv, self.folder, self.port, self.env = name, argv, folder, port, env
        self.free: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._spawn()
        for _ in range(600):
            assert self.process
            assert self.process.poll() is None, (self.folder / f"{self.name}.log").read_text()
            with contextlib.suppress(OSError):
                async with Client(self.port):
                    return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{self.name} does not listen")

    def _spawn(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(self.argv, env=os.environ | self.env, stdout=log, stderr=log)

    def stop(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait(10)
            self.process = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid


def cpu_of(pid: int) -> float:
    """Seconds on a processor, by the scheduler's own count: all threads of one process."""
    ticks = [int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(ticks) / 1e9


def cpu_below(pid: int | None) -> float:
    if pid is None:
        return 0.0
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    used = 0.0
    for child in children:
        with contextlib.suppress(OSError):
            used += cpu_of(int(child))
    return used


class Bench:
    def __init__(self, folder: Path, rounds: int, size: int, postmaster: int | None) -> None:
        self.folder, self.rounds, self.size, self.postmaster = folder, rounds, size, postmaster
        self.cases = [
            Case("read instance", "read", self._read_instance),
            Case("list 50 members", "read", self._list_members),
            Case("create operation", "mutation", self._deploy),
            Case("claim + complete", "mutation", self._claim_and_complete),
        ]

    async def run(self) -> bool:
        await self._settle()
        servers = self._servers()
        try:
            for server in servers:
                await server.start()
            found = await self._compare(servers)
            events = await self._events(servers[0])
        finally:
            for server in servers:
                server.stop()
        return self._print(found["core"], found["bare"], found["grown"], events)

    # ── the world

    async def _settle(self) -> None:
        from gpuaas_core.migrations.migrate import migrate

        from core.tests.support.fixtures import _settle, add_machines, database_url, new_store

        place = self.folder / "world"
        place.mkdir()
        new_store(place)
        migrate(database_url(place))
        self.world = await _settle(place)
        need = (self.rounds + 1) * self.size + 4 * self.size + 50
        self.allocations = add_machines(place, self.world.allocations[0], need)
        await self._add_instance_of_fifty(place)
        self._fill(place, 0, SMALL)
        self._stay_signed_in(place)

    def _stay_signed_in(self, place: Path) -> None:
        """A busy machine needs longer than the quarter of an hour for which a token is good."""
        from gpuaas_core.identity.tables import sessions

        with _opened(place) as db, db.engine.begin() as tx:
            tx.execute(sessions.update().values(expires_at=sessions.c.expires_at + 86_400_000))

    async def _add_instance_of_fifty(self, place: Path) -> None:
        from core.tests.support.fixtures import MovableClock, caller, open_platform

        mine, self.allocations = self.allocations[:50], self.allocations[50:]
        with open_platform(place, MovableClock(), flushed=True) as platform:
            async with caller(platform) as api:
                world = self.world.through(api.http)
                one = await world.running(world.allocations[0], "one")
                intent = {"head": mine[:1], "worker": mine[1:]}
                fifty = await world.deploy(name="fifty", topology="multi_node", placement_intent=intent)
                await world.complete(await world.claim())
        self.one, self.fifty = one["id"], fifty["instance"]["id"]

    def _fill(self, place: Path, start: int, end: int) -> None:
        """Operations that ended, ten to an instance that is gone, each with events, an audit row and a request."""
        from gpuaas_core.audit.tables import audit
        from gpuaas_core.events.tables import events
        from gpuaas_core.idempotency.tables import seen_requests
        from gpuaas_core.instances.tables import instances
        from gpuaas_core.operations.tables import operations
        from sqlalchemy import select

        with _opened(place) as db:
            with db.engine.connect() as tx:
                lasting = {
                    table.name: dict(tx.execute(query).first()._mapping)  # type: ignore[union-attr]
                    for table, query in (
                        (instances, select(instances).where(instances.c.id == self.one)),
                        (operations, select(operations).where(operations.c.lock_key == self.one)),
                        (events, select(events).limit(1)),
                        (audit, select(audit).limit(1)),
                        (seen_requests, select(seen_requests).order_by(seen_requests.c.at.desc()).limit(1)),
                    )
                }
            numbers = range(start, end)
            gone = {"state": "deleted"}
            other = {"tenant_id": "ten_filled"}
            _bulk(
                db, instances, (lasting["instances"] | gone | {"id": f"inst_0{n:08d}"} for n in numbers if n % 10 == 0)
            )
            _bulk(
                db,
                operations,
                (
                    lasting["operations"]
                    | {"id": f"op_0{n:08d}", "instance_id": f"inst_0{n - n % 10:08d}", "correlation_id": f"cor-{n:08d}"}
                    for n in numbers
                ),
            )
            _bulk(
                db,
                events,
                (
                    lasting["events"]
                    | other
                    | {"sequence": 3 * n + k, "id": f"evt_0{n:08d}{k}", "correlation_id": f"cor-{n:08d}"}
                    for n in numbers
                    for k in range(3)
                ),
            )
            _bulk(
                db,
                audit,
                (lasting["audit"] | other | {"sequence": n, "correlation_id": f"cor-{n:08d}"} for n in numbers),
            )
            _bulk(db, seen_requests, (lasting["seen_requests"] | {"key": f"filled-{n:012d}"} for n in numbers))
            _analyse(db)

    def _servers(self) -> list[Server]:
        """The core, the same by hand, and the core again on a store that has grown; each on a store of its own."""
        from core.tests.support.fixtures import Store, copy_store, database_url
        from core.tests.support.served import PROGRAM, free_port

        store = Store(self.folder / "world", 0, self.world, {})
        made = []
        for name in ("core", "bare", "grown"):
            place, port = self.folder / name, free_port()
            place.mkdir()
            copy_store(store, place)
            if name == "grown":
                self._fill(place, SMALL, LARGE)
            env = {"GPUAAS_CORE_DATA": str(place), "GPUAAS_CORE_PORT": str(port)}
            env["GPUAAS_CORE_DATABASE"] = database_url(place)
            bare = [sys.executable, str(ROOT / "bench" / "bare.py"), database_url(place), str(port)]
            server = Server(name, bare if name == "bare" else [str(PROGRAM), "serve"], place, port, env)
            server.free = list(self.allocations)
            made.append(server)
        return made

    # ── the measuring

    async def _compare(self, servers: list[Server]) -> dict[str, list[Measured]]:
        found: dict[str, list[Measured]] = {server.name: [] for server in servers}
        for case in self.cases:
            rounds: dict[str, list[Measured]] = {server.name: [] for server in servers}
            for number in range(self.rounds + 1):
                for server in servers:
                    measured = await self._measure(server, case, self.size)
                    if number:  # the first round warms up
                        rounds[server.name].append(measured)
            for name, all_of_them in rounds.items():
                found[name].append(Measured(*(statistics.median(column) for column in _columns(all_of_them))))
        return found

    async def _measure(self, server: Server, case: Case, size: int) -> Measured:
        cpu, below, began = cpu_of(server.pid), cpu_below(self.postmaster), time.monotonic()
        await case.run(server, size)
        took = time.monotonic() - began
        used, beside = cpu_of(server.pid) - cpu, cpu_below(self.postmaster) - below
        return Measured(size / took, used / size * 1e6, beside / size * 1e6)

    async def _all(self, server: Server, size: int, ask: Callable[[Client, int], Awaitable[None]]) -> None:
        todo = iter(range(size))

        async def work() -> None:
            async with Client(server.port) as client:
                for number in todo:
                    await ask(client, number)

        await asyncio.gather(*(work() for _ in range(CLIENTS)))

    async def _read_instance(self, server: Server, size: int) -> None:
        path = f"/v1/projects/{self.world.red}/instances/{self.one}"
        await self._all(server, size, lambda client, _: client.ask("GET", path, self._boss))  # type: ignore[arg-type,return-value]

    async def _list_members(self, server: Server, size: int) -> None:
        path = f"/v1/projects/{self.world.red}/instances/{self.fifty}/members"
        await self._all(server, size, lambda client, _: client.ask("GET", path, self._boss))  # type: ignore[arg-type,return-value]

    async def _deploy(self, server: Server, size: int) -> None:
        async def ask(client: Client, _number: int) -> None:
            allocation = server.free.pop()
            body = self.world.deploy_body(allocation, allocation.replace("_", "-"))
            await client.ask("POST", f"/v1/projects/{self.world.red}/instances", self._boss, body, expect=202)

        await self._all(server, size, ask)

    async def _claim_and_complete(self, server: Server, size: int) -> None:
        path, token = f"/v1/projects/{self.world.red}/operations", self.world.controller.token or ""

        async def ask(client: Client, _number: int) -> None:
            # The last few are looked for by all clients at once, and one may find them all taken just then.
            wanted = {"app_slug": "echo", "holder": secrets.token_hex(8), "wait_s": 2}
            claim = json.loads(await client.ask("POST", f"{path}/claim", token, wanted))
            ready = [{"member_id": one["id"], "state": "ready"} for one in claim["instance"]["members"]]
            body = {"claim_epoch": claim["claim_epoch"], "members": ready}
            await client.ask("POST", f"{path}/{claim['operation']['id']}/complete", token, body)

        await self._all(server, size, ask)

    @property
    def _boss(self) -> str:
        return self.world.boss.token or ""

    async def _events(self, core: Server) -> float:
        """Events per second, from the request that causes them to a reader of the stream who has them all."""
        size = self.size * 4
        path = f"/v1/tenants/{self.world.tenant}/events"
        async with Client(core.port) as client:
            head = json.loads(await client.ask("GET", f"{path}?limit=1", self._boss))["head"]
            reader, writer = await asyncio.open_connection("127.0.0.1", core.port)
            ask = f"GET {path}/stream HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer {self._boss}\r\n"
            writer.write(f"{ask}Last-Event-ID: {head}\r\n\r\n".encode())
            began = time.monotonic()
            writing = asyncio.create_task(self._deploy(core, size))
            seen = 0
            while seen < size * 4:  # two members, the operation, the instance
                seen += (await reader.readline()).startswith(b"event: apps.")
            took = time.monotonic() - began
            await writing
            writer.close()
        return seen / took

    def _print(self, core: list[Measured], bare: list[Measured], grown: list[Measured], events: float) -> bool:
        print(f"{'':18} {'core':>24} {'bare':>22} {'CPU':>8} {'operations in the store':>29}")
        print(
            f"{'':18} {'req/s':>8} {'µs':>8} {'µs PG':>7} {'req/s':>7} {'µs':>8} {'µs PG':>6} {'ratio':>6} {'most':>4}"
            f" {'1,000':>10} {'100,000':>9} {'change':>8}"
        )
        good = True
        for case, ours, theirs, more in zip(self.cases, core, bare, grown, strict=True):
            ratio, change = ours.micros / theirs.micros, more.micros / ours.micros - 1
            fine = ratio <= MOST[case.kind] and change <= FLAT
            good = good and fine
            print(
                f"{case.name:18} {ours.rate:8.0f} {ours.micros:8.0f} {ours.database:7.0f} {theirs.rate:7.0f} "
                f"{theirs.micros:8.0f} {theirs.database:6.0f} {ratio:6.2f} {MOST[case.kind]:4.1f} {ours.micros:10.0f} "
                f"{more.micros:9.0f} {change:+8.0%}  {'ok' if fine else 'OVER'}"
            )
        print(f"events end to end  {events:8.0f} events/s", flush=True)
        return good


def _columns(all_of_them: list[Measured]) -> Iterator[tuple[float, ...]]:
    return zip(*((one.rate, one.micros, one.database) for one in all_of_them), strict=True)


@contextlib.contextmanager
def _opened(place: Path) -> Iterator[Any]:
    from gpuaas_core.kit.db import Database

    from core.tests.support.fixtures import database_url

    db = Database(database_url(place))
    try:
        yield db
    finally:
        db.close()


def _bulk(db: Any, table: Any, rows: Iterator[dict[str, Any]]) -> None:
    """Past SQLAlchemy: half a million rows in seconds."""
    names = [column.name for column in table.columns]
    jsons = {column.name for column in table.columns if column.type.__class__.__name__ == "JSON"}

    def plain(row: dict[str, Any]) -> list[Any]:
        return [json.dumps(row[name]) if name in jsons and row[name] is not None else row[name] for name in names]

    raw = db.engine.raw_connection()
    try:
        if db.is_sqlite:
            raw.driver_connection.execute("BEGIN IMMEDIATE")
            into = f"insert into {table.name} ({', '.join(names)}) values ({', '.join('?' for _ in names)})"
            raw.driver_connection.executemany(into, map(plain, rows))
        else:
            with raw.cursor().copy(f"copy {table.name} ({', '.join(names)}) from stdin") as copy:
                for row in rows:
                    copy.write_row(plain(row))
        raw.commit()
    finally:
        raw.close()


def _analyse(db: Any) -> None:
    """What PostgreSQL does by itself some time after so many new rows; nobody does it for SQLite."""
    if not db.is_sqlite:
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("vacuum analyze")


if __name__ == "__main__":
    sys.exit(main())
