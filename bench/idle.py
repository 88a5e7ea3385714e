"""What an idle platform costs: 1,000 machines, an operator of 1,000 projects and 200 open event streams, together.

The core is the real program on a PostgreSQL of its own. Machines, operator and readers are connections of this one
process. A machine does what the agent does: one poll at a time, each on a new connection, which waits 25 to 30 s; and
as many machines sign in per second as would for tokens that are renewed every ten minutes. The operator is one service
account with a delegation in each project, and one claim that waits. The readers follow one tenant.

CPU time counts, not wall time, so that other load on the machine changes little: seconds of CPU per second, of the
core's process and of all processes of PostgreSQL. At the end operations are created, one after another, and the time
until the waiting operator has each is measured by the clock: that figure means something on a quiet machine only. How
long the core's event loop had to wait for a CPU meanwhile is printed with it.

    python bench/idle.py [--machines 1000] [--projects 1000] [--streams 200] [--seconds 60] [--no-gate] [--profile FILE]
"""

import argparse
import asyncio
import json
import logging
import math
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpuaas_core.kit.db import Database, metadata
from joserfc.jwk import OKPKey
from measuring import Client, Server, analyse, copy_rows, cpu_below, opened

MOST_CORE, MOST_POSTGRESQL, MOST_P99_MS = 0.25, 0.10, 200.0
POLL_S = (25, 30)  # as the agent
SIGN_IN_EVERY_S = 600  # as the agent: at two thirds of a token's life
SETTLE_S = 35  # each machine has polled twice
OPERATIONS = 200


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--machines", type=int, default=1000)
    options.add_argument("--projects", type=int, default=1000)
    options.add_argument("--streams", type=int, default=200)
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--operations", type=int, default=OPERATIONS)
    options.add_argument("--gate", action=argparse.BooleanOptionalAction, default=True)
    options.add_argument("--profile", help="run the core under cProfile, which also makes it slower")
    chosen = options.parse_args()
    os.environ["GPUAAS_TEST_DATABASE"] = "postgresql"
    return _measure(chosen)


def _measure(chosen: argparse.Namespace) -> int:
    import structlog

    from core.tests.support import postgres

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    cluster, folder = postgres.Cluster(), Path(tempfile.mkdtemp(prefix="gpuaas-idle-"))
    try:
        cluster.start()
        assert cluster.process is not None
        bench = Bench(folder, chosen, cluster.process.pid)
        return 0 if asyncio.run(bench.run()) or not chosen.gate else 1
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    def __init__(self, folder: Path, chosen: argparse.Namespace, postmaster: int) -> None:
        self.folder, self.chosen, self.postmaster = folder, chosen, postmaster
        self.polls = self.errors = self.delivered = self.head = self.generation = 0
        self.claimed: dict[str, float] = {}
        self.one_claimed = asyncio.Event()
        self.working: dict[str, asyncio.Task[None]] = {}  # by operation: the operator's work on it
        self.key = OKPKey.generate_key("Ed25519")  # of all machines: what it costs to check a signature is the same

    async def run(self) -> bool:
        await self._make_world()
        server = self._server()
        await server.start()
        self.port = server.port
        waiting = [asyncio.create_task(self._machine(number)) for number in range(self.chosen.machines)]
        waiting += [asyncio.create_task(self._stream()) for _ in range(self.chosen.streams)]
        waiting += [asyncio.create_task(self._operator()), asyncio.create_task(self._sign_ins())]
        try:
            await asyncio.sleep(SETTLE_S)
            good = self._print_idle(await self._idle(server))
            queued, started = server.queued_s, time.monotonic()
            found = await self._latencies()
            queued = (server.queued_s - queued) / (time.monotonic() - started)
            return self._print_latencies(found, queued) and good and not self.errors
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            server.stop(signal.SIGINT if self.chosen.profile else signal.SIGTERM)  # SIGTERM would end the profiler too

    async def _make_world(self) -> None:
        from gpuaas_core.migrations.migrate import migrate

        from core.tests.support.fixtures import _settle, database_url, new_store
        from core.tests.support.many_machines import add_machines

        place = self.folder / "world"
        place.mkdir()
        new_store(place)
        migrate(database_url(place))
        self.world = world = await _settle(place)
        self.free = add_machines(place, world.allocations[0], self.chosen.operations)
        with opened(database_url(place)) as db:
            self._add_machines(db)
            self._add_projects(db)
            sessions = metadata.tables["sessions"]
            with db.engine.begin() as tx:  # they were opened in the past of this test world
                tx.execute(sessions.update().values(expires_at=9 * 10**15))
                head = "select sequence from event_heads where tenant_id = %(tenant)s"
                self.head = tx.exec_driver_sql(head, {"tenant": world.tenant}).scalar_one()
                generation = "select trust_generation from nodes where id = 'node_idle0'"
                self.generation = tx.exec_driver_sql(generation).scalar_one()
            analyse(db)

    def _add_machines(self, db: Database) -> None:
        """Nodes that have applied their trust, each with a principal, a key and a session."""
        from gpuaas_core.identity.sessions import token_hash

        node, most = self.world.nodes[2], self.chosen.machines
        name = "'idle-' || n"
        ids = {"id": "'node_idle' || n", "name": name, "trust_applied": "t.trust_generation", "state": "'ready'"}
        copy_rows(db, "nodes", f"id = '{node}'", 0, most, ids | {"tasks_at": "1"})
        copy_rows(db, "node_contacts", f"node_id = '{node}'", 0, most, {"node_id": "'node_idle' || n"})
        copy_rows(db, "principals", f"id = '{node}'", 0, most, {"id": "'node_idle' || n", "name": name})
        binding = {"id": "'rb_idle' || n", "principal_id": "'node_idle' || n", "scope_id": "'node_idle' || n"}
        copy_rows(db, "role_bindings", f"principal_id = '{node}'", 0, most, binding)
        key = {"id": "'key_idle' || n", "principal_id": "'node_idle' || n", "expires_at": "9000000000000000"}
        key |= {"thumbprint": "'thumb' || n", "origin": f"{name} || '/'", "last_used_at": "1"}
        key |= {"public_jwk": f"'{json.dumps(self.key.as_dict(private=False))}'::json"}
        copy_rows(db, "principal_keys", f"principal_id = '{node}'", 0, most, key)
        with db.engine.begin() as tx:
            rows = [{"h": token_hash(self._token(n)), "n": n} for n in range(most)]
            tx.exec_driver_sql(
                "insert into sessions (token_hash, id, key_id, principal_id, expires_at, created_at) values"
                " (%(h)s, 'ses_idle' || %(n)s, 'key_idle' || %(n)s, 'node_idle' || %(n)s, 9000000000000000, 1)",
                rows,
            )

    def _add_projects(self, db: Database) -> None:
        """Each with a delegation to the operator."""
        world, most = self.world, self.chosen.projects
        projects = {"id": "'prj_idle' || n", "slug": "'idle-' || n"}
        copy_rows(db, "projects", f"id = '{world.blue}'", 0, most, projects)
        with db.engine.begin() as tx:
            tx.exec_driver_sql(
                "insert into delegations (id, tenant_id, project_id, grantor_id, grantee_id, permissions, reason,"
                " expires_at, created_at) select 'dlg_idle' || n, %(tenant)s, 'prj_idle' || n, %(boss)s, %(account)s,"
                " '[\"apps.operation.work\"]', 'bench', 9e15, 1 from generate_series(0, %(last)s) n",
                {"tenant": world.tenant, "boss": world.boss_id, "account": world.controller_id, "last": most - 1},
            )

    def _server(self) -> Server:
        from core.tests.support.fixtures import database_url

        place, port = self.folder / "world", free_port()
        env = {"GPUAAS_CORE_DATA": str(place), "GPUAAS_CORE_DATABASE": database_url(place)}
        argv = [str(Path(sys.executable).with_name("gpuaas-core")), "serve"]
        if self.chosen.profile:
            argv = [sys.executable, "-m", "cProfile", "-o", self.chosen.profile, *argv]
        return Server("core", argv, place, port, env | {"GPUAAS_CORE_PORT": str(port)})

    # ── who waits

    @staticmethod
    def _token(number: int) -> str:
        return f"gpt_idle{number:08d}"

    async def _machine(self, number: int) -> None:
        await asyncio.sleep(random.uniform(0, POLL_S[1]))
        known = {"applied_generation": self.generation, "acknowledged_generation": self.generation}
        body = known | {"takes_task": True, "machine_id": f"idle-{number}", "boot_id": ""}
        while True:
            wait_s = random.randint(*POLL_S)
            try:
                async with Client(self.port) as client:  # the agent opens a connection for each request
                    path, token = f"/v1/nodes/node_idle{number}/poll", self._token(number)
                    text = await client.ask("POST", path, token, body | {"wait_s": wait_s}, expect=(200, 204))
                    assert not text, text
                    self.polls += 1
            except (OSError, AssertionError, asyncio.IncompleteReadError) as error:
                self.errors += 1
                if self.errors < 5:
                    print(f"poll: {error!r}"[:300], flush=True)
                await asyncio.sleep(1)

    async def _sign_ins(self) -> None:
        """As many as these machines do."""
        from core.tests.support.fixtures import assertion

        while True:
            await asyncio.sleep(SIGN_IN_EVERY_S / max(self.chosen.machines, 1))
            node = f"node_idle{random.randrange(self.chosen.machines)}"
            form = "grant_type=client_credentials&client_assertion_type="
            form += "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion="
            form += assertion(self.key, node, now=int(time.time()))
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            head = "POST /v1/token HTTP/1.1\r\nHost: core\r\nConnection: close\r\n"
            head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
            writer.write((head + form).encode())
            status = await reader.readline()
            if b" 200 " not in status:
                self.errors += 1
                print(f"sign-in: {status!r} {(await reader.read(2000))[-400:]!r}", flush=True)
            writer.close()

    async def _stream(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)
        path = f"/v1/tenants/{self.world.tenant}/events/stream?after={self.head}"
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: core\r\nAuthorization: Bearer {self.world.boss.token}\r\n\r\n".encode()
        )
        while line := await reader.readline():
            self.delivered += line.startswith(b"data: ")
        print("a stream ended", flush=True)
        self.errors += 1

    async def _operator(self) -> None:
        """Claim as the SDK's controller: name what it works on, or its own operations would be returned to it again."""
        body = {"app_slug": "echo", "holder": "idle-operator", "wait_s": 30}
        token = str(self.world.controller.token)
        while True:
            async with Client(self.port) as client:
                known = body | {"holding": [id for id, task in self.working.items() if not task.done()]}
                text = await client.ask("POST", "/v1/operations/claim", token, known, expect=(200, 204))
                if text:
                    claim = json.loads(text)
                    operation = claim["operation"]["id"]
                    self.claimed[operation] = time.perf_counter()
                    self.working[operation] = asyncio.create_task(self._complete(claim, token))
                    self.one_claimed.set()

    async def _complete(self, claim: Any, token: str) -> None:
        members = [{"member_id": member["id"], "state": "ready"} for member in claim["instance"]["members"]]
        path = f"/v1/projects/{self.world.red}/operations/{claim['operation']['id']}/complete"
        async with Client(self.port) as client:
            await client.ask("POST", path, token, {"claim_epoch": claim["claim_epoch"], "members": members})

    # ── what it costs

    async def _idle(self, server: Server) -> tuple[float, float, float]:
        polls, started = self.polls, time.monotonic()
        core, postgresql = server.cpu, cpu_below(self.postmaster)
        await asyncio.sleep(self.chosen.seconds)
        seconds = time.monotonic() - started
        core, postgresql = server.cpu - core, cpu_below(self.postmaster) - postgresql
        return core / seconds, postgresql / seconds, (self.polls - polls) / seconds

    async def _latencies(self) -> list[float]:
        """From the answer to a request that created an operation until the waiting operator has it."""
        found: list[float] = []
        for number in range(self.chosen.operations):
            body = self.world.deploy_body(self.free[number], f"idle-{number}")
            path = f"/v1/projects/{self.world.red}/instances"
            async with Client(self.port) as client:
                text = await client.ask("POST", path, str(self.world.boss.token), body, expect=(202,))
            created = time.perf_counter()
            operation = json.loads(text)["operation"]["id"]
            async with asyncio.timeout(60):
                while operation not in self.claimed:
                    self.one_claimed.clear()
                    await self.one_claimed.wait()
            found.append(max(self.claimed[operation] - created, 0) * 1000)
            await self.working[operation]
            await asyncio.sleep(0.1)  # the operator waits again
        return sorted(found)

    def _print_idle(self, idle: tuple[float, float, float]) -> bool:
        core, postgresql, polls = idle
        chosen = self.chosen
        print(f"{chosen.machines} machines, {chosen.projects} projects of one operator, {chosen.streams} streams")
        print(f"{polls:.1f} polls/s; {self.errors} errors; {self.delivered} events delivered")
        good = _line("core: CPU", core, MOST_CORE, f"{core:.1%}", f"{MOST_CORE:.0%}")
        most = f"{MOST_POSTGRESQL:.0%}"
        return _line("PostgreSQL: CPU", postgresql, MOST_POSTGRESQL, f"{postgresql:.1%}", most) and good

    def _print_latencies(self, found: list[float], queued: float) -> bool:
        p50, p99 = found[len(found) // 2], found[math.ceil(len(found) * 0.99) - 1]
        print(f"{len(found)} operations: p50 {p50:.0f} ms, longest {found[-1]:.0f} ms", end="; ")
        print(f"the core's event loop waited for a CPU {queued:.1%} of the time, load {os.getloadavg()[0]:.1f}")
        return _line("created to claimed, p99", p99, MOST_P99_MS, f"{p99:.0f} ms", f"{MOST_P99_MS:.0f} ms")


def _line(name: str, value: float, most: float, shown: str, limit: str) -> bool:
    good = value <= most
    print(f"{name:26} {shown:>20}   at most {limit}{'' if good else '   ABOVE'}", flush=True)
    return good


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
