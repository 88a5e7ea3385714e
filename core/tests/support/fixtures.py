"""A real core on a real (temporary) store, driven through HTTP. Time is a clock the tests move."""

import asyncio
import contextlib
import copy
import functools
import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from gpuaas_core.api.app import build_app, build_platform, guarded
from gpuaas_core.artifacts.store import Store as ArtifactStore
from gpuaas_core.custody.key_providers.embedded import Embedded
from gpuaas_core.custody.vault import open_vault
from gpuaas_core.http.call import Platform
from gpuaas_core.identity.passwords import hash_password
from gpuaas_core.identity.users import bootstrap_admin
from gpuaas_core.kit.clock import system_clock
from gpuaas_core.kit.db import Database, metadata
from gpuaas_core.migrations.migrate import migrate
from joserfc import jwt
from joserfc.jwk import OKPKey
from sqlalchemy import Connection, event

from core.tests.support import connections, postgres, statements
from core.tests.support.echo_app import MANIFEST

ADMIN = "admin@example.com"
PUBLIC_URL = "http://127.0.0.1:8080"
PASSWORD = "correct horse battery"
CLEAN = {"checks": [{"check": "processes", "ok": True, "detail": "none left"}]}  # teardown evidence of one machine
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJmD0Q4vWcPCGb2V5K2OFt4TqQ0z7gDbS9xMbyzSCr4w"


class MovableClock:
    """Runs like any clock, from the moment it is set to; tests move it forward instead of waiting."""

    def __init__(self, start: int | None = None) -> None:
        self.offset = 0 if start is None else start - system_clock()

    def __call__(self) -> int:
        return system_clock() + self.offset

    def forward(self, seconds: float) -> None:
        self.offset += int(seconds * 1000)


class Api:
    """A caller: sends Idempotency-Keys by itself, like the SDK does."""

    def __init__(self, http: httpx2.AsyncClient, token: str | None = None) -> None:
        self.http, self.token = http, token

    def as_(self, token: str | None) -> "Api":
        return Api(self.http, token)

    async def call(self, method: str, path: str, *, key: str | None = None, **kwargs: Any) -> httpx2.Response:
        headers = kwargs.pop("headers", {})
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if method == "POST" and "Idempotency-Key" not in headers:
            headers["Idempotency-Key"] = key or secrets.token_hex(16)
        return await self.http.request(method, path, headers=headers, **kwargs)

    async def get(self, path: str, **kwargs: Any) -> httpx2.Response:
        return await self.call("GET", path, **kwargs)

    async def post(self, path: str, json: Any = None, **kwargs: Any) -> httpx2.Response:
        return await self.call("POST", path, json=json if json is not None else {}, **kwargs)

    async def ok(self, path: str, json: Any = None, **kwargs: Any) -> Any:
        answer = await self.post(path, json, **kwargs)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


@dataclass
class Store:
    """A store with the world in it, made once per test process; each test gets its own copy."""

    folder: Path
    made: int
    world: "World"
    content: dict[str, bytes]  # on PostgreSQL: every table, to fill it again


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    new_store(folder)
    migrate(database_url(folder))
    world = asyncio.run(_settle(folder))
    tables = [table.name for table in metadata.sorted_tables]
    content = postgres.copy_out(postgres.database_of(folder), tables) if postgres.CHOSEN else {}
    return Store(folder, system_clock(), world, content)


@pytest.fixture(scope="session")
def refilled(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On PostgreSQL: the one store that test after test gets, filled again."""
    folder = tmp_path_factory.mktemp("refilled")
    copy_store(store, folder)
    return folder


@pytest.fixture
def clock(store: Store) -> MovableClock:
    """Every test begins right after the world was made, however long the tests before it took."""
    return MovableClock(store.made)


@pytest.fixture
def store_folder(tmp_path: Path, store: Store, request: pytest.FixtureRequest) -> Path:
    """Where this test's own copy of the world lies."""
    if not postgres.CHOSEN:
        copy_store(store, tmp_path)
        return tmp_path
    folder = request.getfixturevalue("refilled")
    postgres.refill(postgres.database_of(folder), store.content)
    shutil.rmtree(folder)  # what lay beside the database, checkpoints say, belongs to the test before
    shutil.copytree(store.folder, folder)
    return folder


@pytest.fixture
def platform(store_folder: Path, clock: MovableClock) -> Iterator[Platform]:
    with open_platform(store_folder, clock, kept=True) as platform:
        yield platform


@pytest.fixture
async def api(platform: Platform) -> AsyncIterator[Api]:
    async with caller(platform) as api:
        yield api


@pytest.fixture
def admin(world: "World") -> Api:
    return world.admin


@pytest.fixture
def world(api: Api, platform: Platform, store: Store) -> "World":
    mine = store.world.through(api.http)
    mine.platform = platform
    return mine


def database_url(folder: Path) -> str:
    return postgres.url(postgres.database_of(folder)) if postgres.CHOSEN else f"sqlite:///{folder}/core.db"


def new_store(folder: Path) -> None:
    if postgres.CHOSEN:
        postgres.create(postgres.database_of(folder))


def copy_store(store: Store, folder: Path) -> None:
    if postgres.CHOSEN:
        postgres.create(postgres.database_of(folder), postgres.database_of(store.folder))
    for path in store.folder.iterdir():
        shutil.copy2(path, folder)


def prolong_sessions(store: Store, folder: Path) -> None:
    """For a served core, whose clock is the real one: however long ago the world was made, its tokens are new."""
    sessions = metadata.tables["sessions"]
    db = Database(database_url(folder))
    try:
        with db.engine.begin() as tx:
            tx.execute(sessions.update().values(expires_at=sessions.c.expires_at + system_clock() - store.made))
    finally:
        db.close()


def remove_store(folder: Path) -> None:
    if postgres.CHOSEN:
        postgres.drop(postgres.database_of(folder))


@contextlib.contextmanager
def looking(folder: Path) -> Iterator[Connection]:
    """The store past its core, which may be dead: one moment of it, to count in."""
    db = Database(database_url(folder))
    try:
        with db.engine.connect() as connection:
            yield connection
    finally:
        db.close()


@contextlib.contextmanager
def open_platform(
    folder: Path, clock: MovableClock, *, flushed: bool = False, kept: bool = False
) -> Iterator[Platform]:
    """`flushed` is for tests that kill the core or measure it: it waits for the disk at each commit, as a served core does."""
    db = Database(database_url(folder))
    statements.keep(db)
    if kept and postgres.CHOSEN:
        connections.keep(db)
    if not (flushed or postgres.CHOSEN):
        event.listen(db.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    try:
        vault = open_vault(db.write_now, Embedded.in_file(folder / "master.key"))
        places: Any = {"checkpoints": folder / "checkpoints", "artifacts": ArtifactStore(folder / "artifacts")}
        yield build_platform(db, vault, clock, public_url=PUBLIC_URL, **places)
    finally:
        db.close()


@contextlib.asynccontextmanager
async def caller(platform: Platform) -> AsyncIterator[Api]:
    app = _app()
    app.state.platform = platform
    transport = httpx2.ASGITransport(app=guarded(app), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        yield Api(http)


@functools.cache
def _app() -> FastAPI:
    """The routes are worked out once per test process; which platform they serve is told by each test."""
    return build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type]


async def _settle(folder: Path) -> "World":
    hashed = hash_password(PASSWORD)
    with open_platform(folder, MovableClock()) as platform:
        platform.db.write_now(lambda tx: bootstrap_admin(tx, ADMIN, hashed, platform.clock()))
        async with caller(platform) as api:
            return await _furnish(api, platform)


async def sign_in(api: Api, email: str) -> Api:
    answer = await api.ok("/v1/sign-in", {"email": email, "password": PASSWORD})
    return api.as_(answer["access_token"])


def assertion(key: OKPKey, principal: str, *, now: int, **changes: Any) -> str:
    claims = {
        "iss": principal,
        "sub": principal,
        "aud": "gpuaas",
        "iat": now,
        "exp": now + 60,
        "jti": secrets.token_hex(8),
    }
    return jwt.encode({"alg": "Ed25519"}, claims | changes, key, algorithms=["Ed25519"])


async def machine_token(api: Api, key: OKPKey, principal: str, now: int) -> Api:
    form = {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": assertion(key, principal, now=now),
    }
    answer = await api.http.post("/v1/token", data=form)
    assert answer.status_code == 200, answer.text
    return api.as_(answer.json()["access_token"])


class World:
    """One tenant, two projects, three machines, one app, a controller per project: what most tests start from."""

    api: Api
    admin: Api
    boss: Api  # tenant admin
    boss_id: str
    viewer: Api  # of the red project
    viewer_id: str
    tenant: str
    red: str
    blue: str
    nodes: list[str]
    allocations: list[str]  # of the red project
    blue_allocation: str
    spare: list[str]  # more of the red project, where a test has asked for them
    controller: Api  # of the red project
    controller_id: str
    controller_key: OKPKey
    second: Api  # another service account of the red project
    second_id: str
    blue_controller: Api
    machine: Api  # the last node, the one held by the blue project
    machine_key: OKPKey
    platform: Platform

    def now(self) -> int:
        """The platform's time in seconds, as a well-set clock elsewhere would show it."""
        return self.platform.clock() // 1000

    def through(self, http: httpx2.AsyncClient) -> "World":
        """The same world with every caller talking through another client."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Api):
                setattr(other, name, Api(http, value.token))
        return other

    def deploy_body(self, allocation: str, name: str = "first", **more: Any) -> dict[str, Any]:
        return {"name": name, "app_slug": "echo", "placement_intent": {"head": [allocation]}} | more

    async def deploy(self, allocation: str | None = None, name: str = "first", **more: Any) -> Any:
        body = self.deploy_body(allocation or self.allocations[0], name, **more)
        return await self.boss.ok(f"/v1/projects/{self.red}/instances", body)

    async def claim(self, holder: str = "controller-a", *, by: Api | None = None, **more: Any) -> Any:
        """The claimed work, or None when nothing waits."""
        body = {"app_slug": "echo", "holder": holder} | more
        return await (by or self.controller).ok(f"/v1/projects/{self.red}/operations/claim", body)

    async def instance(self, instance_id: str) -> Any:
        return (await self.boss.get(f"/v1/projects/{self.red}/instances/{instance_id}")).json()

    async def progress(self, claim: Any, step: int, of: int = 5, **more: Any) -> Any:
        body = {"claim_epoch": claim["claim_epoch"], "phase": "work", "step": step, "of": of, "message": f"Step {step}"}
        return await self.controller.ok(self.operation(claim["operation"]["id"], "progress"), body | more)

    async def running(self, allocation: str | None = None, name: str = "first") -> Any:
        """An instance that was deployed and runs."""
        accepted = await self.deploy(allocation, name)
        await self.complete(await self.claim())
        return await self.instance(accepted["instance"]["id"])

    async def several(self, *workers: str) -> Any:
        """An instance on several machines that runs: the head on the first allocation, workers on the others."""
        body = self.deploy_body(self.allocations[0], "wide", topology="multi_node")
        body["placement_intent"]["worker"] = list(workers)
        accepted = await self.boss.ok(f"/v1/projects/{self.red}/instances", body)
        await self.complete(await self.claim())
        return await self.instance(accepted["instance"]["id"])

    async def more_machines(self, number: int) -> list[str]:
        """Allocations of the red project on machines of their own."""
        found = []
        for _ in range(number):
            node, machine, _ = await add_node(self, f"more-{secrets.token_hex(3)}")
            found.append(await hold(self, self.red, node, machine))
        return found

    def of(self, instance: Any, *more: str) -> str:
        return "/".join((f"/v1/projects/{self.red}/instances", instance["id"], *more))

    async def done(self, claim: Any, **more: Any) -> Any:
        """A member's operation, or any that reports on no member, is done."""
        return await self.complete(claim, **({"members": []} | more))

    async def decommission(self, instance_id: str) -> Any:
        return await self.boss.ok(f"/v1/projects/{self.red}/instances/{instance_id}/decommission")

    async def torn_down(self, claim: Any) -> Any:
        evidence = {member["allocation_id"]: CLEAN for member in claim["instance"]["members"]}
        return await self.complete(claim, members=[], evidence=evidence)

    def operation(self, operation_id: str, verb: str = "") -> str:
        return f"/v1/projects/{self.red}/operations/{operation_id}" + (f"/{verb}" if verb else "")

    async def complete(self, claim: Any, **more: Any) -> Any:
        members = [{"member_id": m["id"], "state": "ready"} for m in claim["instance"]["members"]]
        body = {"claim_epoch": claim["claim_epoch"], "members": members} | more
        return await self.controller.ok(self.operation(claim["operation"]["id"], "complete"), body)

    async def fail(self, claim: Any, code: str = "it_broke", **more: Any) -> Any:
        error = {"code": code, "message": "It broke.", "way_out": "Mend it and retry.", "retryable": True}
        body = {"claim_epoch": claim["claim_epoch"], "error": error} | more
        return await self.controller.ok(self.operation(claim["operation"]["id"], "fail"), body)


async def add_user(
    world: World, email: str, role: str | None, *, project: str | None = None, by: Api | None = None
) -> tuple[Api, str]:
    by = by or world.boss
    person = {"email": email, "name": email.split("@")[0], "password": PASSWORD}
    user = (await by.ok(f"/v1/tenants/{world.tenant}/users", person))["id"]
    if role:
        binding = {"principal_id": user, "role": role, "project_id": project}
        await by.ok(f"/v1/tenants/{world.tenant}/role-bindings", binding)
    return await sign_in(world.api, email), user


async def invite(world: World, name: str) -> str:
    return (await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": name}))["token"]


def enrol_body(token: str, name: str, key: OKPKey) -> dict[str, Any]:
    facts = {"hostname": name, "cpus": 4, "memory_mb": 8000, "gpus": [{"path": "/dev/nvidia0"}], "machine_id": name}
    return {
        "token": token,
        "public_jwk": key.as_dict(private=False),
        "ssh_host_public_key": HOST_KEY,
        "address": "10.0.0.9",
        "facts": facts,
    }


async def join(world: World, name: str) -> tuple[str, Api, OKPKey]:
    """A machine enrols and signs in; it has not yet said that it trusts anything."""
    key = OKPKey.generate_key("Ed25519")
    joined = await world.api.ok("/v1/enrol", enrol_body(await invite(world, name), name, key))
    return joined["node_id"], await machine_token(world.api, key, joined["node_id"], world.now()), key


async def add_node(world: World, name: str) -> tuple[str, Api, OKPKey]:
    node, machine, key = await join(world, name)
    await apply_trust(node, machine)
    return node, machine, key


async def poll(node: str, machine: Api, applied: int = 0, acknowledged: int = 0, **more: Any) -> httpx2.Response:
    """One poll of the machine's agent, which says what trust it has applied."""
    body = {"applied_generation": applied, "acknowledged_generation": acknowledged} | more
    return await machine.post(f"/v1/nodes/{node}/poll", body)


async def trust_of(node: str, machine: Api) -> dict[str, Any]:
    """As a machine sees it that has applied nothing yet."""
    return (await poll(node, machine)).json()["trust"]


async def applied(node: str, machine: Api, generation: int) -> None:
    """The machine says that it has applied this generation."""
    answer = await poll(node, machine, generation)
    assert answer.is_success, answer.text


async def apply_trust(node: str, machine: Api) -> dict[str, Any]:
    trust = await trust_of(node, machine)
    await applied(node, machine, trust["generation"])
    return trust


async def hold(world: World, project: str, node: str, machine: Api) -> str:
    allocation = await world.boss.ok(f"/v1/projects/{project}/allocations", {"node_id": node})
    await apply_trust(node, machine)
    return allocation["id"]


async def service_account(world: World, project: str) -> tuple[str, Api, OKPKey]:
    key = OKPKey.generate_key("Ed25519")
    body = {"name": "controller", "public_jwk": key.as_dict(private=False)}
    account = await world.boss.ok(f"/v1/projects/{project}/service-accounts", body)
    return account["id"], await machine_token(world.api, key, account["id"], world.now()), key


async def asleep(platform: Platform, topic: str, requests: int = 1) -> None:
    """Until so many requests wait for the topic."""
    waiting = platform.wakeups._waiting  # pyright: ignore[reportPrivateUsage]
    for _ in range(1000):
        if len(waiting.get(topic, ())) >= requests:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{requests} requests should wait for {topic!r}; what is waited for: {sorted(waiting)}")


async def _furnish(api: Api, platform: Platform) -> World:
    w = World()
    w.platform, w.api, w.admin = platform, api, await sign_in(api, ADMIN)
    w.tenant = (await w.admin.ok("/v1/tenants", {"slug": "acme", "name": "Acme"}))["id"]
    w.boss, w.boss_id = await add_user(w, "boss@acme.example", "tenant_admin", by=w.admin)
    w.red = (await w.boss.ok(f"/v1/tenants/{w.tenant}/projects", {"slug": "red", "name": "Red"}))["id"]
    w.blue = (await w.boss.ok(f"/v1/tenants/{w.tenant}/projects", {"slug": "blue", "name": "Blue"}))["id"]
    w.viewer, w.viewer_id = await add_user(w, "viewer@acme.example", "project_viewer", project=w.red)
    await w.admin.ok("/v1/apps", {"slug": "echo", "name": "Echo"})
    await w.admin.ok("/v1/apps/echo/versions", {"version": "1.0.0", "manifest": MANIFEST})
    await w.admin.ok("/v1/apps/echo/versions/1.0.0/publish")
    await w.boss.ok(f"/v1/projects/{w.red}/entitlements", {"app_slug": "echo"})
    await w.boss.ok(f"/v1/projects/{w.blue}/entitlements", {"app_slug": "echo"})
    await _furnish_machines(w)
    w.controller_id, w.controller, w.controller_key = await service_account(w, w.red)
    w.second_id, w.second, _ = await service_account(w, w.red)
    _, w.blue_controller, _ = await service_account(w, w.blue)
    return w


async def _furnish_machines(w: World) -> None:
    w.nodes, w.allocations = [], []
    for number, owner in enumerate((w.red, w.red, w.blue)):
        node, w.machine, w.machine_key = await add_node(w, f"node-{number}")
        w.nodes.append(node)
        held = await hold(w, owner, node, w.machine)
        if owner == w.red:
            w.allocations.append(held)
        else:
            w.blue_allocation = held
