"""Every route × every kind of caller, asked of the running API: what contracts/access-matrix.json says is what happens.

An allowed cell is proven, not guessed. A POST carries a body with a member twice: it is refused with `malformed_body`
only after the caller was let in, and before anything happens. A GET names things that really exist, so it answers 200.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from gpuaas_core.api.app import build_app, build_platform
from gpuaas_core.contract_docs.matrix import CALLERS, LENT, access_matrix
from gpuaas_core.http.call import needs
from gpuaas_core.iam.bindings import bind
from gpuaas_core.kit.problems import UNSEEN
from gpuaas_core.node_tasks.tables import node_tasks
from sqlalchemy import insert, text

from core.tests.support.artifact_scene import deliver, digest, push
from core.tests.support.fixtures import PASSWORD, Api, World, add_node, add_user, service_account, sign_in

COMMITTED = json.loads((Path(__file__).parents[3] / "contracts" / "access-matrix.json").read_text())
TWICE = b'{"member": 1, "member": 2}'
ASKED = {
    "/policy/explain": {"field": "regions", "value": "default"},
    "/explain": {"permission": "apps.instance.read"},
    "/auth/providers": {"tenant": "acme"},
}  # what a GET cannot do without
PROOF = {
    "GET": (200, None),
    "POST": (400, "malformed_body"),
    "PUT": (400, "malformed_body"),
    "DELETE": (428, "precondition_required"),
}
CODES = {"401": {"unauthenticated", "token_expired"}, "403": {"permission_denied"}, "404": {"not_found"}}


async def _callers(world: World) -> dict[str, Api]:
    tenant, red, blue = world.tenant, world.red, world.blue

    async def person(name: str, role: str | None, project: str | None = None) -> Api:
        return (await add_user(world, f"{name}@acme.example", role, project=project))[0]

    callers = {
        "anonymous": world.api.as_(None),
        "platform_admin": world.admin,
        "tenant_admin": world.boss,
        "project_viewer": world.viewer,
        "service_account": world.controller,
        "other_service_account": world.blue_controller,
        "other_node_agent": world.machine,
        "user_without_role": await person("new", None),
        "other_project_admin": await person("blue-lead", "project_admin", blue),
        "project_admin": await person("lead", "project_admin", red),
        "project_member": await person("member", "project_member", red),
        "app_operator": await person("operator", "app_operator", red),
        "revoked_token": await person("gone", "project_admin", red),
        "disabled_user": await person("away", "tenant_admin"),
        "platform_ops": await person("ops", None),
        "other_tenant_admin": await _other_tenant_admin(world),
    }
    await callers["revoked_token"].ok("/v1/sign-out")
    ops, away = await _id(callers["platform_ops"]), await _id(callers["disabled_user"])
    disable = text("update principals set disabled_at = 1 where id = :id")
    world.platform.db.write_now(lambda tx: tx.execute(disable, {"id": away}))
    world.platform.db.write_now(lambda tx: bind(tx, ops, "platform_ops", "platform", "*", None, 1))
    wide, callers["overbound_service_account"], _ = await service_account(world, blue)
    world.platform.db.write_now(lambda tx: bind(tx, wide, "tenant_admin", "tenant", tenant, tenant, 1))
    disabled, callers["disabled_service_account"], _ = await service_account(world, red)
    await world.boss.ok(f"/v1/projects/{red}/service-accounts/{disabled}/disable")
    callers["delegated"], callers["revoked_delegation"] = await _lent(world), await _lent(world, revoked=True)
    gone, callers["retired_key"], _ = await service_account(world, red)
    keys = (await world.boss.get(f"/v1/projects/{red}/service-accounts/{gone}/keys")).json()["items"]
    await world.boss.ok(f"/v1/projects/{red}/service-accounts/{gone}/keys/{keys[0]['id']}/retire")
    callers["break_glass_look"] = await _broke_in(world, "look")
    callers["break_glass_operate"] = await _broke_in(world, "operate")
    callers["console"], callers["forged_console"] = await _console(world), await _console(world, forged=True)
    node, callers["node_agent"], _ = await add_node(world, "node-asked-for")
    world.nodes = [node]  # not into the list itself: every test of this process shares it
    return callers


async def _lent(world: World, *, revoked: bool = False) -> Api:
    account, api, _ = await service_account(world, world.blue)
    body = {"grantee_id": account, "permissions": sorted(LENT), "reason": "the matrix", "expires_in_s": 3600}
    made = await world.boss.ok(f"/v1/projects/{world.red}/delegations", body)
    if revoked:
        await world.boss.ok(f"/v1/projects/{world.red}/delegations/{made['id']}/revoke")
    return api


async def _broke_in(world: World, mode: str) -> Api:
    api, user = await add_user(world, f"{mode}@acme.example", None)
    bound = [user, "platform_admin", "platform", "*", None, 1]
    world.platform.db.write_now(lambda tx: bind(tx, *bound))
    body = {"tenant_id": world.tenant, "mode": mode, "reason": "the matrix", "ticket": "M-1", "minutes": 60}
    made = await api.ok("/v1/platform/break-glass", body)
    if made["state"] != "active":
        await world.admin.ok(f"/v1/platform/break-glass/{made['id']}/approve")
    return api


class _Console(Api):
    """A browser with a console session; `csrf` is empty when another site's page makes it send its cookie."""

    cookie = csrf = ""

    async def call(self, method: str, path: str, *, key: str | None = None, **kwargs: Any) -> Any:
        proof = {"Cookie": self.cookie, "Origin": "http://core"} | ({"X-CSRF-Token": self.csrf} if self.csrf else {})
        return await super().call(method, path, key=key, **kwargs | {"headers": kwargs.get("headers", {}) | proof})


async def _console(world: World, *, forged: bool = False) -> Api:
    email = f"console-{forged}@acme.example".lower()
    await add_user(world, email, "project_admin", project=world.red)
    answer = await world.api.http.post("/v1/auth/session", json={"email": email, "password": PASSWORD})
    world.api.http.cookies.clear()
    browser = _Console(world.api.http)
    browser.cookie = answer.headers.get_list("set-cookie")[0].split(";")[0]
    browser.csrf = "" if forged else answer.json()["csrf_token"]
    return browser


async def _id(caller: Api) -> str:
    return (await caller.get("/v1/whoami")).json()["principal"]["id"]


async def _other_tenant_admin(world: World) -> Api:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    person = {"email": "boss@other.example", "name": "Other boss", "password": PASSWORD}
    boss = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    await world.admin.ok(f"/v1/tenants/{other}/role-bindings", {"principal_id": boss, "role": "tenant_admin"})
    return await sign_in(world.api, "boss@other.example")


_POLICIES = {"": "admin", "/tenants/{tenant}": "boss", "/projects/{red}": "boss"}


async def _real(world: World) -> dict[str, str]:
    """One existing thing for every path parameter of a GET; a POST never gets so far as to look."""
    deployed = await world.deploy()
    new = {"If-None-Match": "*"}
    for place, who in _POLICIES.items():
        path = f"/v1{place.format(tenant=world.tenant, red=world.red)}/policies/house-rules"
        await getattr(world, who).call("PUT", path, headers=dict(new), json={})
    return {
        "policy_name": "house-rules",
        "tenant_id": world.tenant,
        "project_id": world.red,
        "node_id": world.nodes[0],
        "allocation_id": world.allocations[0],
        "instance_id": deployed["instance"]["id"],
        "operation_id": deployed["operation"]["id"],
        "member_id": deployed["instance"]["members"][0]["id"],
        "account_id": world.second_id,
        "provider_id": await _provider(world),
        "task_id": _task(world, deployed["operation"]["id"]),
        "credential_id": (await world.boss.ok(f"/v1/projects/{world.red}/credentials", {"name": "storage"}))["id"],
        **await _delivered(world),
        "app_slug": "echo",
        "version": "1.0.0",
        "agent_version": "current",
        "correlation_id": deployed["operation"]["correlation_id"],
    }


def _task(world: World, operation_id: str) -> str:
    """One of the machine and of the operation that the other paths name."""
    row = {"id": "task_matrix", "tenant_id": world.tenant, "node_id": world.nodes[0], "project_id": world.red}
    row |= {"operation_id": operation_id, "kind": "wipe", "arguments": {}, "epoch": 1, "idempotent": True}
    row |= {"state": "succeeded", "attempt": 1, "deadline_at": 1, "message": "", "evidence": {}, "created_at": 1}
    values = row | {"asked_by": world.controller_id, "correlation_id": "cor-matrix"}
    world.platform.db.write_now(lambda tx: tx.execute(insert(node_tasks).values(**values)))
    return row["id"]


async def _delivered(world: World) -> dict[str, str]:
    """An artifact of the platform, which everybody below it sees as well, promised to the machine asked for."""
    assert (await push(world.admin, "/v1", b"{}")).status_code == 201
    said = {"name": "packages", "version": "1", "sha256": digest(b"{}")}
    artifact = (await world.admin.ok("/v1/artifacts", said))["id"]
    await world.boss.ok(f"/v1/projects/{world.red}/allocations", {"node_id": world.nodes[0]})
    delivery = deliver(world, artifact, world.nodes[0]).id
    return {"source_id": "asrc_builtin", "artifact_id": artifact, "delivery_id": delivery, "sha256": digest(b"{}")}


async def _provider(world: World) -> str:
    """It does not answer: a caller with the permission learns only that."""
    body = {"name": "Silent", "issuer": "http://127.0.0.1:9", "client_id": "public"}
    return (await world.boss.ok(f"/v1/tenants/{world.tenant}/identity-providers", body))["id"]


class _Anything(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return f"{name}-of-a-post"


async def _ask(caller: Api, method: str, path: str, real: dict[str, str]) -> Any:
    if method in ("POST", "PUT"):
        headers = {"Content-Type": "application/json"}
        return await caller.call(method, path.format_map(_Anything(real)), headers=headers, content=TWICE)
    assert set(_parameters(path)) <= real.keys(), f"{path}: name an existing thing in _real()"
    query = {"principal_id": real["principal_id"]} | next((q for p, q in ASKED.items() if path.endswith(p)), {})
    if path.endswith("/stream"):
        query = {"after": "no-cursor"}  # refused after the caller was let in; without it the answer would not end
    return await caller.call(method, path.format(**real), params=query)


def _parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


def _outcome(answer: Any, method: str, path: str, permission: str) -> str:
    told = answer.json() if "json" in answer.headers.get("content-type", "") else {}
    status, code = answer.status_code, told.get("code")
    if path.startswith("/v1/triage/") and (status, code) == (404, "not_found"):
        return "allowed"  # everybody may ask; an id of which one may see nothing is answered like an unknown one
    if permission == "public":
        looked_at = status in (200, 422) or code in ("issuer_unreachable", "oidc_state_invalid")
        return "allowed" if looked_at else f"{status} {code}"
    if code == "csrf_token_wrong":
        return "403 csrf"
    if str(status) in CODES:
        known = code in CODES[str(status)] and (status != 404 or answer.json()["detail"] == UNSEEN)
        return str(status) if known else f"{status} {code}"
    proof = PROOF[method]
    if path.endswith("/stream"):
        proof = (400, "event_cursor_invalid")
    return "allowed" if (status, code) == proof else f"{status} {code}"


async def test_every_cell_of_the_matrix_is_true(world: World) -> None:
    callers = await _callers(world)
    assert callers.keys() == CALLERS.keys(), "a kind of caller without a caller of that kind"
    real = await _real(world) | {"principal_id": world.viewer_id}
    wrong, asked = [], 0
    for row in COMMITTED["routes"]:
        method, path = row["route"].split(" ")
        told = {name: outcome for outcome, names in row["callers"].items() for name in names.split(", ")}
        assert told.keys() == callers.keys(), row["route"]
        for name, caller in callers.items():
            answer = await _ask(caller, method, path, real)
            found = _outcome(answer, method, path, row["permission"])
            asked += 1
            if found != told[name]:
                wrong.append(f"{row['route']} as {name}: {found}, the matrix says {told[name]}")
    assert wrong == []
    assert asked == sum(COMMITTED["cells"].values()) > 1000


def test_a_route_without_a_row_is_noticed() -> None:
    app = build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type] - routes only
    assert access_matrix(app) == COMMITTED, "run `make contracts` and read who may do what now"
    router = APIRouter()

    @router.get("/v1/projects/{project_id}/new-thing", **needs("apps.instance.read", "project"))
    async def new_thing() -> None: ...

    app.include_router(router)
    assert access_matrix(app) != COMMITTED


def test_a_route_without_a_permission_has_no_row_and_stops_the_contracts() -> None:
    app = FastAPI(openapi_url=None)

    @app.get("/v1/forgotten")
    async def forgotten() -> None: ...

    with pytest.raises(KeyError):
        access_matrix(app)
