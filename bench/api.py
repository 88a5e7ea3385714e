"""What a request costs: CPU time of the core next to two limits that no program in this stack goes below, in one run.

What is compared with what, on SQLite and on PostgreSQL:

- *read instance*, *list 50 members*: with a hello-world FastAPI handler that returns a small JSON;
- *create* (deploy an instance), *claim + complete* (two requests): with a FastAPI handler that sends the same SQL as
  prepared text through `sqlite3` or psycopg, in one transaction with the same durability, and returns the same answer.
  "The same SQL" is what the core itself sends: each run records it first (`recording.py`), so the limit follows the
  core. A core that sends fewer statements also lowers its limit; the number of statements is printed for that reason;
- the core with the core on a store that has grown from 1,000 to 100,000 operations (with their events, audit rows and
  answers) and 10,000 projects.

Every server gets the same requests from the same clients, in turns: all of a round before the next. Seconds belong to
the machine, and the machine may change its speed within a run, so only ratios of CPU time per request are judged: of
the server process, between neighbours of one round, and of these ratios the median of the rounds. "PG" is what the
processes of PostgreSQL used meanwhile, and "with PG" the ratio of the sums; on SQLite the database runs in the server
process. The first round warms up and does not count.

    python bench/api.py [--database sqlite] [--rounds 5] [--size 60] [--no-gate] [--statements]
"""

import argparse
import asyncio
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
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpuaas_core.kit.db import Database
from gpuaas_core.kit.json_types import Json
from measuring import Client, Server, analyse, copy_rows, cpu_below, opened
from recording import Recorded, Recorder

BARE = Path(__file__).with_name("bare.py")
DATABASES = ("sqlite", "postgresql")
SMALL, LARGE = 1_000, 100_000
PROJECTS, TENANTS = 10_000, 1_000
FLAT = 0.20
CHEAP = 20  # so many more requests in a round of reads, which then takes as long as the core's own duties are apart


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--database", choices=DATABASES)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--size", type=int, default=60, help="mutations per round")
    options.add_argument("--gate", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--statements", action="store_true", help="also print the SQL of one request of each kind")
    chosen = options.parse_args()
    if chosen.database is None:
        return max(_run_again(name, sys.argv[1:]) for name in DATABASES)
    os.environ["GPUAAS_TEST_DATABASE"] = chosen.database
    return _one_database(chosen)


def _run_again(database: str, words: list[str]) -> int:
    argv = [sys.executable, __file__, "--database", database, *words]
    return subprocess.run(argv, check=False).returncode


def _one_database(chosen: argparse.Namespace) -> int:
    import structlog

    from core.tests.support import postgres

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    cluster = postgres.Cluster() if postgres.CHOSEN else None
    folder = Path(tempfile.mkdtemp(prefix="gpuaas-bench-"))
    try:
        if cluster:
            cluster.start()
        postmaster = cluster.process.pid if cluster and cluster.process else None
        bench = Bench(folder, chosen.rounds, chosen.size, postmaster, show=chosen.statements)
        print(f"\n━━ {chosen.database}", flush=True)
        return 0 if asyncio.run(bench.run()) or not chosen.gate else 1
    finally:
        if cluster:
            cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Named(TypedDict):
    id: str


class InstanceJson(TypedDict):
    members: list[Named]


class ClaimJson(TypedDict):
    """What of an answer to a claim the next request needs."""

    operation: Named
    instance: InstanceJson
    claim_epoch: int


@dataclass(frozen=True)
class Case:
    name: str
    most: float  # the ratio of CPU time to the limit
    limit: str
    run: Callable[[Server, int], Awaitable[None]]
    of_limit: Callable[[Server, int], Awaitable[None]]
    times: int = 1


@dataclass(frozen=True)
class Measured:
    """Per request; CPU in microseconds."""

    rate: float
    own: float
    postgresql: float

    @property
    def both(self) -> float:
        return self.own + self.postgresql


@dataclass(frozen=True)
class Round:
    core: Measured
    limit: Measured
    grown: Measured


class Bench:
    def __init__(self, folder: Path, rounds: int, size: int, postmaster: int | None, *, show: bool) -> None:
        self.folder, self.rounds, self.size, self.postmaster, self.show = folder, rounds, size, postmaster, show
        self.cases = [
            Case("read instance", 3.0, "hello", self._read_instance, self._hello, CHEAP),
            Case("list 50 members", 6.0, "hello", self._list_members, self._hello, CHEAP),
            Case("create", 2.5, "same SQL", self._create, self._create),
            Case("claim + complete", 2.5, "same SQL", self._claim_and_complete, self._claim_and_complete),
        ]

    async def run(self) -> bool:
        await self._make_world()
        recorded = await self._record()
        servers = self._servers()
        try:
            for server in servers:
                await server.start()
            rounds = await self._compare(servers)
            events = await self._events(servers[0])
        finally:
            for server in servers:
                server.stop()
        good = self._print(rounds)
        for name, request in recorded.typical().items():
            print(f"{name}: {len(request.statements)} statements")
            for sent in request.statements if self.show else []:
                print(f"    {' '.join(sent.text.split())}")
        print(f"events end to end: {events:.0f} events/s", flush=True)
        return good

    # ── the store

    async def _make_world(self) -> None:
        from gpuaas_core.kit.db import metadata
        from gpuaas_core.migrations.migrate import migrate

        from core.tests.support.fixtures import (
            MovableClock,
            _settle,
            caller,
            database_url,
            new_store,
            open_platform,
        )
        from core.tests.support.many_machines import add_machines

        place = self.folder / "world"
        place.mkdir()
        new_store(place)
        migrate(database_url(place))
        self.world = await _settle(place)
        need = 50 + (self.rounds + 1) * self.size + 2 * self.size
        machines = add_machines(place, self.world.allocations[0], need)
        fifty, self.allocations = machines[:50], machines[50:]
        with open_platform(place, MovableClock(), flushed=True) as platform:
            async with caller(platform) as api:
                world = self.world.through(api.http)
                self.one = (await world.running(world.allocations[0], "one"))["id"]
                intent = {"head": fifty[:1], "worker": fifty[1:]}
                wide = await world.deploy(name="fifty", topology="multi_node", placement_intent=intent)
                await world.complete(await world.claim())
                self.fifty = wide["instance"]["id"]
        sessions = metadata.tables["sessions"]
        with opened(database_url(place)) as db:
            with db.engine.begin() as tx:  # a busy machine needs longer than a token is valid
                tx.execute(sessions.update().values(expires_at=sessions.c.expires_at + 86_400_000))
            self._add_operations(db, 0, SMALL)
            analyse(db)

    def _add_operations(self, db: Database, first: int, end: int) -> None:
        """Ended operations, ten for each deleted instance, each with three events, an audit row and a stored answer."""
        one, ten = f"id = '{self.one}'", "100000000 + n / 10 * 10"
        number = "100000000 + n"
        gone = {"id": f"'inst_0' || ({number} * 10)", "state": "'deleted'"}
        copy_rows(db, "instances", one, first // 10, end // 10, gone)
        ids = {"id": f"'op_0' || ({number})", "correlation_id": f"'cor-' || ({number})"}
        ids |= {"target_id": f"'inst_0' || (({ten}) * 10)", "lock_key": f"'inst_0' || (({ten}) * 10)"}
        copy_rows(db, "operations", f"target_id = '{self.one}'", first, end, ids)
        other = {"tenant_id": "'ten_filled'", "sequence": "n", "correlation_id": f"'cor-' || ({number})"}
        copy_rows(db, "events", "true limit 1", 3 * first, 3 * end, other | {"id": f"'evt_0' || ({number})"})
        copy_rows(db, "audit", "true limit 1", first, end, other)
        newest = "true order by at desc limit 1"
        copy_rows(db, "seen_requests", newest, first, end, {"key": f"'filled-' || ({number})"})

    def _add_projects(self, db: Database) -> None:
        """Each with an entitlement, a quota and a role of one of its tenant's users."""
        number, tenant = "100000000 + n", f"'ten_0' || (100000000 + n / {PROJECTS // TENANTS})"
        red = f"'{self.world.red}'"
        copy_rows(
            db,
            "tenants",
            f"id = '{self.world.tenant}'",
            0,
            TENANTS,
            {"id": f"'ten_0' || ({number})", "slug": f"'filled-' || ({number})"},
        )
        project = {"id": f"'prj_0' || ({number})", "slug": f"'filled-' || ({number})", "tenant_id": tenant}
        copy_rows(db, "projects", f"id = {red}", 0, PROJECTS, project)
        for table in ("entitlements", "quotas"):
            copy_rows(db, table, f"project_id = {red} limit 1", 0, PROJECTS, {"project_id": f"'prj_0' || ({number})"})
        viewer = f"principal_id = '{self.world.viewer_id}'"
        bound = {"id": f"'rb_0' || ({number})", "scope_id": f"'prj_0' || ({number})", "tenant_id": tenant}
        copy_rows(db, "role_bindings", viewer, 0, PROJECTS, bound)

    async def _record(self) -> Recorded:
        from core.tests.support.fixtures import MovableClock, Store, caller, copy_store, open_platform

        place, recorded = self.folder / "recorded", Recorded()
        place.mkdir()
        copy_store(Store(self.folder / "world", 0, self.world, {}), place)
        with open_platform(place, MovableClock()) as platform:
            recorder = Recorder(platform)
            async with caller(platform) as api:
                world = self.world.through(api.http)
                count = (self.rounds + 1) * self.size
                for allocation in reversed(self.allocations[-count:]):
                    with recorder.request() as request:
                        answer = await world.boss.post(*self._created(allocation))
                    request.status, request.body = answer.status_code, answer.content
                    assert answer.status_code == 202, answer.text
                    recorded.creates.append(request)
                for _ in range(count):
                    with recorder.request() as request:
                        answer = await world.controller.post(*self._claimed())
                    request.status, request.body = answer.status_code, answer.content
                    assert answer.status_code == 200, answer.text
                    recorded.claims.append(request)
                    claim = answer.json()
                    with recorder.request() as request:
                        answer = await world.controller.post(*self._completed(claim))
                    request.status, request.body = answer.status_code, answer.content
                    assert answer.status_code == 200, answer.text
                    recorded.completes[claim["operation"]["id"]] = request
        recorded.save(self.folder / "recorded.pickle")
        return recorded

    def _servers(self) -> list[Server]:
        """The core, the limits, and the core on a store that has grown; each on its own copy of the store."""
        from core.tests.support.fixtures import Store, copy_store, database_url
        from core.tests.support.served import PROGRAM, free_port

        store = Store(self.folder / "world", 0, self.world, {})
        made = []
        for name in ("core", "limit", "grown"):
            place, port = self.folder / name, free_port()
            place.mkdir()
            copy_store(store, place)
            if name == "grown":
                with opened(database_url(place)) as db:
                    self._add_operations(db, SMALL, LARGE)
                    self._add_projects(db)
                    analyse(db)
            env = {"GPUAAS_CORE_DATA": str(place), "GPUAAS_CORE_PORT": str(port)}
            env["GPUAAS_CORE_DATABASE"] = database_url(place)
            bare = [
                str(BARE),
                database_url(place),
                str(self.folder / "recorded.pickle"),
                str(port),
            ]
            argv = [sys.executable, *bare] if name == "limit" else [str(PROGRAM), "serve"]
            server = Server(name, argv, place, port, env)
            server.free = list(self.allocations)
            made.append(server)
        return made

    # ── the requests

    async def _hello(self, server: Server, size: int) -> None:
        await server.ask_many(size, lambda client, _: client.ask("GET", "/hello", self._boss))

    async def _read_instance(self, server: Server, size: int) -> None:
        path = f"/v1/projects/{self.world.red}/instances/{self.one}"
        await server.ask_many(size, lambda client, _: client.ask("GET", path, self._boss))

    async def _list_members(self, server: Server, size: int) -> None:
        path = f"/v1/projects/{self.world.red}/instances/{self.fifty}/members"
        await server.ask_many(size, lambda client, _: client.ask("GET", path, self._boss))

    async def _create(self, server: Server, size: int) -> None:
        async def ask(client: Client, _number: int) -> None:
            path, body = self._created(server.free.pop())
            await client.ask("POST", path, self._boss, body, expect=(202,))

        await server.ask_many(size, ask)

    async def _claim_and_complete(self, server: Server, size: int) -> None:
        token = self.world.controller.token or ""

        async def ask(client: Client, _number: int) -> None:
            path, body = self._claimed()
            claim = json.loads(await client.ask("POST", path, token, body))
            path, body = self._completed(claim)
            await client.ask("POST", path, token, body)

        await server.ask_many(size, ask)

    def _created(self, allocation: str) -> tuple[str, Json]:
        body = self.world.deploy_body(allocation, allocation.replace("_", "-"))
        return f"/v1/projects/{self.world.red}/instances", body

    def _claimed(self) -> tuple[str, Json]:
        # Several clients ask for the last operations at once; one that finds them all locked waits for the next.
        body = {"app_slug": "echo", "holder": secrets.token_hex(8), "wait_s": 2}
        return f"/v1/projects/{self.world.red}/operations/claim", body

    def _completed(self, claim: ClaimJson) -> tuple[str, Json]:
        ready = [{"member_id": one["id"], "state": "ready"} for one in claim["instance"]["members"]]
        body = {"claim_epoch": claim["claim_epoch"], "members": ready}
        return f"/v1/projects/{self.world.red}/operations/{claim['operation']['id']}/complete", body

    @property
    def _boss(self) -> str:
        return self.world.boss.token or ""

    # ── the measuring

    async def _compare(self, servers: list[Server]) -> list[list[Round]]:
        """The rounds of each case."""
        found: list[list[Round]] = []
        for case in self.cases:
            rounds = [Round(*[await self._measure(server, case) for server in servers]) for _ in range(self.rounds + 1)]
            found.append(rounds[1:])  # the first round warms up
        return found

    async def _measure(self, server: Server, case: Case) -> Measured:
        size = self.size * case.times
        run = case.of_limit if server.name == "limit" else case.run
        own, beside, began = server.cpu, cpu_below(self.postmaster), time.monotonic()
        await run(server, size)
        took = time.monotonic() - began
        own, beside = server.cpu - own, cpu_below(self.postmaster) - beside
        return Measured(size / took, own / size * 1e6, beside / size * 1e6)

    async def _events(self, core: Server) -> float:
        """Events per second, from the request that causes them to a reader of the stream who has them all."""
        size = self.size * 2
        path = f"/v1/tenants/{self.world.tenant}/events"
        async with Client(core.port) as client:
            head = json.loads(await client.ask("GET", f"{path}?limit=1", self._boss))["head"]
            reader, writer = await asyncio.open_connection("127.0.0.1", core.port)
            ask = f"GET {path}/stream HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer {self._boss}\r\n"
            writer.write(f"{ask}Last-Event-ID: {head}\r\n\r\n".encode())
            began = time.monotonic()
            writing = asyncio.create_task(self._create(core, size))
            seen = 0
            while seen < size * 4:  # two members, the operation, the instance
                seen += (await reader.readline()).startswith(b"event: apps.")
            took = time.monotonic() - began
            await writing
            writer.close()
        return seen / took

    def _print(self, found: list[list[Round]]) -> bool:
        print(f"{'':17} {'core':>20} {'limit':>26} {'ratio of CPU':>26} {'grown store':>18}")
        print(
            f"{'':17} {'req/s':>6} {'µs':>7} {'µs PG':>6} {'':>9} {'µs':>7} {'µs PG':>7}"
            f" {'':5} {'own':>6} {'with PG':>8} {'most':>5} {'own µs':>9} {'change':>8}"
        )
        good = True
        for case, rounds in zip(self.cases, found, strict=True):
            core = _median([one.core for one in rounds])
            limit, grown = _median([one.limit for one in rounds]), _median([one.grown for one in rounds])
            ratio = statistics.median(one.core.own / one.limit.own for one in rounds)
            both = statistics.median(one.core.both / one.limit.both for one in rounds)
            change = statistics.median(one.grown.both / one.core.both for one in rounds) - 1
            fine = ratio <= case.most and change <= FLAT
            good = good and fine
            print(
                f"{case.name:17} {core.rate:6.0f} {core.own:7.0f} {core.postgresql:6.0f} {case.limit:>9}"
                f" {limit.own:7.0f} {limit.postgresql:7.0f} {'':5} {ratio:6.2f} {both:8.2f} {case.most:5.1f}"
                f" {grown.own:9.0f} {change:+8.0%}  {'ok' if fine else 'OVER'}"
            )
        return good


def _median(rounds: list[Measured]) -> Measured:
    return Measured(
        statistics.median(one.rate for one in rounds),
        statistics.median(one.own for one in rounds),
        statistics.median(one.postgresql for one in rounds),
    )


if __name__ == "__main__":
    sys.exit(main())
