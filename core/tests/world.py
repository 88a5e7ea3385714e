"""A real core on a real (temporary) store, driven through HTTP. Time is a clock the tests move."""

import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey

from gpuaas_core.api.app import build_app, build_platform
from gpuaas_core.custody.vault import Vault
from gpuaas_core.edge.call import Platform
from gpuaas_core.edge.correlate import Correlate
from gpuaas_core.kit.clock import system_clock
from gpuaas_core.kit.db import Database
from gpuaas_core.migrations.migrate import migrate
from gpuaas_core.tenancy.identity import hash_password
from gpuaas_core.tenancy.service import bootstrap_admin

PASSWORD = "correct horse battery"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJmD0Q4vWcPCGb2V5K2OFt4TqQ0z7gDbS9xMbyzSCr4w"


class MovableClock:
    def __init__(self) -> None:
        self.offset = 0

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


@pytest.fixture
def clock() -> MovableClock:
    return MovableClock()


@pytest.fixture
def platform(tmp_path: Path, clock: MovableClock) -> Any:
    url = f"sqlite:///{tmp_path}/core.db"
    migrate(url)
    db = Database(url)
    platform = build_platform(db, Vault.in_file(tmp_path / "master.key"), clock)
    yield platform
    db.close()


@pytest.fixture
async def api(platform: Platform) -> AsyncIterator[Api]:
    app = Correlate(build_app(platform, loops=False))
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://core") as http:
        yield Api(http)


@pytest.fixture(scope="session")
def password_hash() -> str:
    return hash_password(PASSWORD)


@pytest.fixture
async def admin(api: Api, platform: Platform, password_hash: str) -> Api:
    platform.db.write_now(lambda tx: bootstrap_admin(tx, "admin@example.com", password_hash, platform.clock()))
    return await sign_in(api, "admin@example.com")


async def sign_in(api: Api, email: str) -> Api:
    answer = await api.ok("/v1/sign-in", {"email": email, "password": PASSWORD})
    return api.as_(answer["access_token"])


def assertion(key: OKPKey, principal: str, *, now: int, **changes: Any) -> str:
    claims = {"iss": principal, "sub": principal, "aud": "gpuaas", "iat": now, "exp": now + 60, "jti": secrets.token_hex(8)}
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


MANIFEST = {
    "manifest_version": 1,
    "app_slug": "echo",
    "version": "1.0.0",
    "runtime_backend": "bare_metal",
    "title": "Echo",
    "components": [{"key": "head", "title": "Head"}, {"key": "worker", "title": "Worker"}],
    "topologies": [
        {
            "key": "single_node",
            "title": "One machine",
            "components": {"head": {"min": 1, "max": 1}, "worker": {"min": 1, "max": 1, "shares_with": "head"}},
        },
        {
            "key": "multi_node",
            "title": "Several machines",
            "components": {"head": {"min": 1, "max": 1}, "worker": {"min": 1, "max": None}},
        },
    ],
    "inputs_schema": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"greeting": {"type": "string", "maxLength": 20}},
    },
}


class World:
    """One tenant, two projects, three machines, one app, a controller per project: what most tests start from."""

    api: Api
    admin: Api
    boss: Api  # tenant admin
    tenant: str
    red: str
    blue: str
    nodes: list[str]
    allocations: list[str]  # of the red project
    blue_allocation: str
    controller: Api
    controller_id: str
    blue_controller: Api
    machine: Api

    def deploy_body(self, allocation: str, name: str = "first", **more: Any) -> dict[str, Any]:
        return {"name": name, "app_slug": "echo", "placement_intent": {"head": [allocation]}} | more

    async def deploy(self, allocation: str | None = None, name: str = "first", **more: Any) -> Any:
        body = self.deploy_body(allocation or self.allocations[0], name, **more)
        return await self.boss.ok(f"/v1/projects/{self.red}/instances", body)

    async def claim(self, holder: str = "controller-a", **more: Any) -> Any:
        body = {"app_slug": "echo", "holder": holder} | more
        return await self.controller.ok(f"/v1/projects/{self.red}/operations/claim", body)

    def operation(self, operation_id: str, verb: str = "") -> str:
        return f"/v1/projects/{self.red}/operations/{operation_id}" + (f"/{verb}" if verb else "")

    async def complete(self, claim: Any, **more: Any) -> Any:
        members = [{"member_id": m["id"], "state": "ready"} for m in claim["instance"]["members"]]
        body = {"claim_epoch": claim["claim_epoch"], "members": members} | more
        return await self.controller.ok(self.operation(claim["operation"]["id"], "complete"), body)

    async def fail(self, claim: Any, code: str = "it_broke") -> Any:
        error = {"code": code, "message": "It broke.", "way_out": "Mend it and retry.", "retryable": True}
        body = {"claim_epoch": claim["claim_epoch"], "error": error}
        return await self.controller.ok(self.operation(claim["operation"]["id"], "fail"), body)


async def add_node(world: World, name: str) -> tuple[str, Api]:
    invited = await world.boss.ok(f"/v1/tenants/{world.tenant}/enrolments", {"node_name": name})
    key = OKPKey.generate_key("Ed25519")
    facts = {"hostname": name, "cpus": 4, "memory_mb": 8000, "gpus": [{"path": "/dev/nvidia0"}], "machine_id": name}
    body = {
        "token": invited["token"],
        "public_jwk": key.as_dict(private=False),
        "ssh_host_public_key": HOST_KEY,
        "address": "10.0.0.9",
        "facts": facts,
    }
    joined = await world.api.ok("/v1/enrol", body)
    machine = await machine_token(world.api, key, joined["node_id"], system_clock() // 1000)
    await machine.ok(f"/v1/nodes/{joined['node_id']}/trust-applied", {"generation": joined["trust"]["generation"]})
    return joined["node_id"], machine


async def hold(world: World, project: str, node: str, machine: Api) -> str:
    allocation = await world.boss.ok(f"/v1/projects/{project}/allocations", {"node_id": node})
    trust = (await machine.get(f"/v1/nodes/{node}/trust")).json()
    await machine.ok(f"/v1/nodes/{node}/trust-applied", {"generation": trust["generation"]})
    return allocation["id"]


async def service_account(world: World, project: str) -> tuple[str, Api]:
    key = OKPKey.generate_key("Ed25519")
    body = {"name": "controller", "public_jwk": key.as_dict(private=False)}
    account = await world.boss.ok(f"/v1/projects/{project}/service-accounts", body)
    return account["id"], await machine_token(world.api, key, account["id"], system_clock() // 1000)


@pytest.fixture
async def world(api: Api, admin: Api) -> World:
    w = World()
    w.api, w.admin = api, admin
    w.tenant = (await admin.ok("/v1/tenants", {"slug": "acme", "name": "Acme"}))["id"]
    boss = {"email": "boss@acme.example", "name": "Boss", "password": PASSWORD}
    boss_id = (await admin.ok(f"/v1/tenants/{w.tenant}/users", boss))["id"]
    binding = {"principal_id": boss_id, "role": "tenant_admin"}
    await admin.ok(f"/v1/tenants/{w.tenant}/role-bindings", binding)
    w.boss = await sign_in(api, "boss@acme.example")
    w.red = (await w.boss.ok(f"/v1/tenants/{w.tenant}/projects", {"slug": "red", "name": "Red"}))["id"]
    w.blue = (await w.boss.ok(f"/v1/tenants/{w.tenant}/projects", {"slug": "blue", "name": "Blue"}))["id"]
    await admin.ok("/v1/apps", {"slug": "echo", "name": "Echo"})
    await admin.ok("/v1/apps/echo/versions", {"version": "1.0.0", "manifest": MANIFEST})
    await admin.ok("/v1/apps/echo/versions/1.0.0/publish")
    await w.boss.ok(f"/v1/projects/{w.red}/entitlements", {"app_slug": "echo"})
    await w.boss.ok(f"/v1/projects/{w.blue}/entitlements", {"app_slug": "echo"})
    w.nodes, w.allocations = [], []
    for number in range(3):
        node, w.machine = await add_node(w, f"node-{number}")
        w.nodes.append(node)
        owner = w.blue if number == 2 else w.red
        allocation = await hold(w, owner, node, w.machine)
        if owner == w.blue:
            w.blue_allocation = allocation
        else:
            w.allocations.append(allocation)
    w.controller_id, w.controller = await service_account(w, w.red)
    _, w.blue_controller = await service_account(w, w.blue)
    return w
