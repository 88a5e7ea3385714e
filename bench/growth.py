"""What grows with the store: CPU per request on PostgreSQL, on a store and on the same with ten times as many rows.

A full platform is 1,000 tenants, 2,000 projects, 10,000 instances (and 3,000 deleted ones) with 100,000 members,
1,000,000 ended operations, 3,500,000 events, 1,500,000 audit rows, 1,467,000 stored answers, 1,000,000 access grants,
10,000 nodes with 1,350,000 keys and 233,000 log lines. Here are 1 % and 10 % of it, filled by SQL: copies of real rows.
The measured tenant and project hold 1 % of each; what a page shows of them (60 instances, 50 members, 50 operations …)
is the same on both. The audit chains are not true: no request of this list reads them.

Both stores are in one PostgreSQL, each with its own core. Requests go to both in turns; the median of the rounds
counts, less what was used while idle. Judged: the growth of CPU per request (core and PostgreSQL together) is at most
1.2, and PostgreSQL uses at most 0.02 CPU seconds per second while one core serves the larger store and no request
arrives.

    python bench/growth.py [--rounds 3] [--size 25] [--no-gate]
"""

import argparse
import asyncio
import json
import logging
import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["GPUAAS_TEST_DATABASE"] = "postgresql"

from gpuaas_core.kit.db import Database
from measuring import Client, Server, analyse, copy_rows, cpu_below, opened

from core.tests.support import postgres
from core.tests.support.fixtures import (
    MovableClock,
    Store,
    _settle,
    caller,
    copy_store,
    database_url,
    migrate,
    new_store,
    open_platform,
)
from core.tests.support.many_machines import add_machines
from core.tests.support.served import PROGRAM, free_port

MOST_GROWTH, MOST_IDLE = 1.2, 0.02
IDLE_S, SETTLE_S = 20, 15
SHARES = {"1 %": 100, "10 %": 10}  # of a full platform: divided by
TENANTS, PROJECTS, NODES = 1_000, 2_000, 10_000
INSTANCES, DELETED, PER_INSTANCE = 10_000, 3_000, 10
OPERATIONS, EVENTS, AUDIT = 1_000_000, 3_500_000, 1_500_000
ANSWERS, GRANTS, KEYS, LINES = 1_467_000, 1_000_000, 1_350_000, 233_000
SHOWN = 60  # instances of the measured project
N = "1000000000 + n"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--size", type=int, default=25, help="requests of each kind per round")
    options.add_argument("--gate", action=argparse.BooleanOptionalAction, default=True)
    chosen = options.parse_args()
    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    cluster = postgres.Cluster(flushed=False)
    folder = Path(tempfile.mkdtemp(prefix="gpuaas-growth-"))
    try:
        cluster.start()
        assert cluster.process is not None
        bench = Growth(folder, chosen.rounds, chosen.size, cluster.process.pid)
        return 0 if asyncio.run(bench.run()) or not chosen.gate else 1
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


Ask = Callable[[Client, Server], Awaitable[object]]


@dataclass(frozen=True)
class Request:
    name: str
    ask: Ask


class Growth:
    def __init__(self, folder: Path, rounds: int, size: int, postmaster: int) -> None:
        self.folder, self.rounds, self.size, self.postmaster = folder, rounds, size, postmaster

    async def run(self) -> bool:
        await self._make_world()
        servers = [self._server(name, share) for name, share in SHARES.items()]
        try:
            await servers[1].start()
            idle = await self._idle()
            await servers[0].start()
            found = await self._compare(servers, idle)
        finally:
            for server in servers:
                server.stop()
        return self._print(found, idle)

    # ── the stores

    async def _make_world(self) -> None:
        place = self.folder / "world"
        place.mkdir()
        new_store(place)
        migrate(database_url(place))
        self.world = await _settle(place)
        machines = add_machines(place, self.world.allocations[0], 50 + 2 * (self.rounds + 1) * self.size)
        fifty, self.free = machines[:50], machines[50:]
        with open_platform(place, MovableClock(), flushed=True) as platform:
            async with caller(platform) as api:
                world = self.world.through(api.http)
                running = await world.running(world.allocations[0], "one")
                self.one, self.correlation = running["id"], running["correlation_id"]
                intent = {"head": fifty[:1], "worker": fifty[1:]}
                wide = await world.deploy(name="fifty", topology="multi_node", placement_intent=intent)
                await world.complete(await world.claim())
                self.fifty = wide["instance"]["id"]
        with opened(database_url(place)) as db, db.engine.begin() as tx:
            tx.exec_driver_sql("update sessions set expires_at = expires_at + 86400000")

    def _server(self, name: str, share: int) -> Server:
        place, port = self.folder / name.replace(" ", ""), free_port()
        place.mkdir()
        copy_store(Store(self.folder / "world", 0, self.world, {}), place)
        began = time.monotonic()
        with opened(database_url(place)) as db:
            self._fill(db, share)
            analyse(db)
        print(f"{name} of a full platform: filled in {time.monotonic() - began:.0f} s", flush=True)
        env = {"GPUAAS_CORE_DATA": str(place), "GPUAAS_CORE_PORT": str(port)}
        env["GPUAAS_CORE_DATABASE"] = database_url(place)
        server = Server(name, [str(PROGRAM), "serve"], place, port, env)
        server.free = list(self.free)
        return server

    def _fill(self, db: Database, share: int) -> None:
        world, one = self.world, f"id = '{self.one}'"
        tenants, projects, nodes = TENANTS // share, PROJECTS // share, NODES // share
        tenant, project = f"'ten_f' || (mod(n, {tenants}))", f"'prj_f' || (mod(n, {projects}))"
        named = {"slug": f"'filled-' || ({N})"}
        copy_rows(db, "tenants", f"id = '{world.tenant}'", 0, tenants, named | {"id": "'ten_f' || n"})
        copy_rows(
            db, "projects", f"id = '{world.red}'", 0, projects, named | {"id": "'prj_f' || n", "tenant_id": tenant}
        )
        for table in ("entitlements", "quotas"):
            like = f"project_id = '{world.red}' limit 1"
            copy_rows(db, table, like, 0, projects, {"project_id": "'prj_f' || n"})
        self._fill_nodes(db, nodes, KEYS // share, tenant, project)
        self._fill_instances(db, INSTANCES // share, DELETED // share, one, project)
        ids = {"id": f"'op_f' || ({N})", "correlation_id": f"'cor-filled-' || ({N})"}
        of = {"target_id": f"'inst_f' || (mod(n, {INSTANCES // share}))", "scope_id": project, "tenant_id": tenant}
        mine = {"target_id": f"'{self.one}'", "scope_id": f"'{world.red}'", "tenant_id": f"'{world.tenant}'"}
        like, count = f"target_id = '{self.one}' order by id limit 1", OPERATIONS // share
        for first, end, where in ((0, count // 100, mine), (count // 100, count, of)):
            copy_rows(db, "operations", like, first, end, ids | where | {"lock_key": where["target_id"]})
        self._fill_streams(db, share, tenants, project)
        key = {"key": f"'filled-key-' || ({N})", "kept_for": "null", "scope_id": project}
        copy_rows(db, "seen_requests", "true order by at desc limit 1", 0, ANSWERS // share, key)
        self._fill_grants(db, GRANTS // share, project, tenant)
        line = {"id": f"'log_f' || ({N})", "correlation_id": f"'cor-filled-' || ({N})", "level": "'info'"}
        line |= {"at": _now(), "received_at": _now(), "source": "'core'", "message": "'filled'", "fields": "'{}'::json"}
        line |= {"principal_id": f"'{world.boss_id}'", "project_id": project}
        copy_rows(db, "log_lines", None, 0, LINES // share, line)

    def _fill_nodes(self, db: Database, nodes: int, keys: int, tenant: str, project: str) -> None:
        node, one = "'node_f' || n", f"id = '{self.world.nodes[0]}'"
        copy_rows(db, "principals", one, 0, nodes, {"id": node, "tenant_id": tenant})
        seen = {"last_seen_at": f"{_now()} + 86400000"} if "last_seen_at" in _columns("nodes") else {}
        copy_rows(db, "nodes", one, 0, nodes, {"id": node, "tenant_id": tenant, "name": f"'filled-' || ({N})"} | seen)
        held = {"id": "'alloc_f' || n", "node_id": node, "project_id": project, "name": f"'filled-' || ({N})"}
        copy_rows(db, "allocations", f"id = '{self.world.allocations[0]}'", 0, nodes, held)
        of = f"principal_id = '{self.world.nodes[0]}' limit 1"
        old = {"id": f"'key_f' || ({N})", "principal_id": f"'node_f' || (mod(n, {nodes}))", "retired_at": _now()}
        copy_rows(db, "principal_keys", of, 0, keys, old | {"thumbprint": "md5(n::text)", "generation": "n"})

    def _fill_instances(self, db: Database, live: int, deleted: int, one: str, project: str) -> None:
        name, other = {"name": f"'filled-' || ({N})"}, {"project_id": project}
        copy_rows(db, "instances", one, 0, live, name | other | {"id": "'inst_f' || n"})
        copy_rows(db, "instances", one, 0, deleted, other | {"id": "'inst_d' || n", "state": "'deleted'"})
        copy_rows(db, "instances", one, 0, SHOWN, name | {"id": "'inst_s' || n"})
        head = f"instance_id = '{self.one}' order by id limit 1"
        for prefix, count in (("inst_f", live), ("inst_s", SHOWN)):
            member = {"id": f"'mem_{prefix}' || ({N})", "instance_id": f"'{prefix}' || (n / {PER_INSTANCE})"}
            copy_rows(db, "members", head, 0, count * PER_INSTANCE, member)

    def _fill_streams(self, db: Database, share: int, tenants: int, project: str) -> None:
        world = self.world
        mine, of = f"tenant_id = '{world.tenant}'", f"tenant_id = '{world.tenant}' and project_id = '{world.red}'"
        with db.engine.begin() as tx:
            head, audited = tx.exec_driver_sql(f"select sequence, audit_sequence from event_heads where {mine}").one()
        for table, count, at in (("events", EVENTS // share, head), ("audit", AUDIT // share, audited)):
            ids = {"correlation_id": f"'cor-stream-' || ({N})"}
            ids |= {"id": f"'evt_f' || ({N})", "subject": "'inst_f' || (mod(n, 5000))"} if table == "events" else {}
            own, like = count // 100, f"{of} order by sequence desc limit 1"
            copy_rows(db, table, like, 0, own, ids | {"sequence": f"{at} + 1 + n"})
            other = {"tenant_id": f"'ten_f' || (mod(n, {tenants}))", "sequence": f"1 + n / {tenants}"}
            copy_rows(db, table, f"{of} order by sequence limit 1", own, count, ids | other | {"project_id": project})
        with db.engine.begin() as tx:
            moved = f"sequence = sequence + {EVENTS // share // 100}"
            moved += f", audit_sequence = audit_sequence + {AUDIT // share // 100}"
            tx.exec_driver_sql(f"update event_heads set {moved} where {mine}")
            tx.exec_driver_sql(f"update event_heads set audit_anchored = audit_sequence where {mine}")
        each = {"sequence": str(EVENTS // share // tenants + 1), "tenant_id": "'ten_f' || n"}
        full = str(AUDIT // share // tenants + 1)
        each |= {"audit_sequence": full, "audit_anchored": full}
        copy_rows(db, "event_heads", mine, 0, tenants, each)

    def _fill_grants(self, db: Database, count: int, project: str, tenant: str) -> None:
        grant = {"id": f"'gr_f' || ({N})", "serial": N, "tenant_id": tenant, "project_id": project, "claim_epoch": "1"}
        grant |= {"operation_id": f"'op_f' || ({N})", "allocation_id": f"'{self.world.allocations[0]}'"}
        grant |= {"principal_id": f"'{self.world.controller_id}'", "key_id": "'key'", "user_authority": "1"}
        grant |= {"host_authority": "1", "source_addresses": "'[]'::json", "purpose": "'operation'"}
        past = f"{_now()} - 3600000"
        grant |= {"expires_at": past, "ends_at": past, "created_at": past, "revoked_at": past}
        copy_rows(
            db, "access_grants", None, 0, count, {k: v for k, v in grant.items() if k in _columns("access_grants")}
        )

    # ── the requests

    def _requests(self) -> list[Request]:
        w, project, tenant = self.world, f"/v1/projects/{self.world.red}", f"/v1/tenants/{self.world.tenant}"
        paths = {
            "whoami": "/v1/whoami",
            "list projects": "/v1/projects",
            "list 50 instances": f"{project}/instances",
            "instances of a small project": f"/v1/projects/{w.blue}/instances",
            "read instance": f"{project}/instances/inst_s1",
            "list 50 members": f"{project}/instances/{self.fifty}/members",
            "list 50 operations": f"{project}/operations",
            "the newest 50 operations": f"{project}/operations?newest_first=true",
            "operations under way": f"{project}/operations?history=false",
            "200 events of the tenant": f"{tenant}/events?after=%d&limit=200",
            "200 events of the project": f"{project}/events?after=%d&limit=200",
            "events of a subject": f"{tenant}/events?subject={self.one}&limit=50",
            "the newest 50 audit rows": f"{tenant}/audit?before=0&limit=50",
            "audit of an unknown actor": f"{tenant}/audit?before=0&actor=usr_none",
            "triage": f"/v1/triage/{self.correlation}",
            "50 allocations of the tenant": f"{tenant}/allocations",
            "50 nodes of the tenant": f"{tenant}/nodes",
        }
        reads = [Request(name, self._get(path)) for name, path in paths.items()]
        return [*reads, Request("create", self._create), Request("claim, heartbeat, complete", self._work)]

    def _get(self, path: str) -> Ask:
        async def ask(client: Client, server: Server) -> None:
            at = path.replace("%d", str(max(self.heads[server.name] - 200, 0)))
            await client.ask("GET", at, self.world.boss.token or "")

        return ask

    async def _create(self, client: Client, server: Server) -> None:
        allocation = server.free.pop()
        body = self.world.deploy_body(allocation, allocation.replace("_", "-"))
        path = f"/v1/projects/{self.world.red}/instances"
        await client.ask("POST", path, self.world.boss.token or "", body, expect=(202,))

    async def _work(self, client: Client, server: Server) -> None:
        path, token = f"/v1/projects/{self.world.red}/operations", self.world.controller.token or ""
        wanted = {"app_slug": "echo", "holder": secrets.token_hex(8), "wait_s": 2}
        claim = json.loads(await client.ask("POST", f"{path}/claim", token, wanted))
        held = {"claim_epoch": claim["claim_epoch"]}
        await client.ask("POST", f"{path}/{claim['operation']['id']}/heartbeat", token, held)
        ready = [{"member_id": one["id"], "state": "ready"} for one in claim["instance"]["members"]]
        await client.ask("POST", f"{path}/{claim['operation']['id']}/complete", token, held | {"members": ready})

    # ── the measuring

    async def _idle(self) -> float:
        await asyncio.sleep(SETTLE_S)
        before = cpu_below(self.postmaster)
        await asyncio.sleep(IDLE_S)
        return (cpu_below(self.postmaster) - before) / IDLE_S

    async def _compare(self, servers: list[Server], idle: float) -> dict[str, dict[str, list[float]]]:
        self.heads = {server.name: await self._head(server) for server in servers}
        found: dict[str, dict[str, list[float]]] = {}
        for request in self._requests():
            rounds: dict[str, list[float]] = {server.name: [] for server in servers}
            for number in range(self.rounds + 1):
                for server in servers:
                    used = await self._measure(server, request, idle)
                    if number:  # the first round warms up
                        rounds[server.name].append(used)
            found[request.name] = rounds
        return found

    async def _head(self, server: Server) -> int:
        async with Client(server.port) as client:
            path = f"/v1/tenants/{self.world.tenant}/events?limit=1"
            return int(json.loads(await client.ask("GET", path, self.world.boss.token or ""))["head"])

    async def _measure(self, server: Server, request: Request, idle: float) -> float:
        own, beside, began = server.cpu, cpu_below(self.postmaster), time.monotonic()
        await server.ask_many(self.size, lambda client, _: request.ask(client, server))
        took = time.monotonic() - began
        used = server.cpu - own + cpu_below(self.postmaster) - beside - idle * took
        return used / self.size * 1e3

    def _print(self, found: dict[str, dict[str, list[float]]], idle: float) -> bool:
        small, large = SHARES
        print(f"CPU per request, core + PostgreSQL, ms{small:>10}{large:>9}   growth (at most {MOST_GROWTH})")
        good = idle <= MOST_IDLE
        for name, rounds in found.items():
            before, after = statistics.median(rounds[small]), statistics.median(rounds[large])
            # Neighbours share the machine's noise: the growth is the median of the pairs, not of the sides.
            growth = statistics.median(b / a for a, b in zip(rounds[small], rounds[large], strict=True))
            good = good and growth <= MOST_GROWTH
            print(f"{name:36} {before:11.2f} {after:8.2f} {growth:8.2f}  {'ok' if growth <= MOST_GROWTH else 'OVER'}")
        fine = "ok" if idle <= MOST_IDLE else "OVER"
        print(f"idle PostgreSQL, CPU seconds per second, {large}: {idle:.3f} (at most {MOST_IDLE})  {fine}", flush=True)
        return good


def _now() -> str:
    return str(time.time_ns() // 1_000_000)


def _columns(table: str) -> set[str]:
    from gpuaas_core.kit.db import metadata

    return {column.name for column in metadata.tables[table].columns}


if __name__ == "__main__":
    sys.exit(main())
