"""Who may see and do what: projects, tenants, people, controllers and machines, route by route."""

import asyncio
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from gpuaas_core.api.app import api_routes, build_app, build_platform, check_routes
from gpuaas_core.authz.permissions import EVERYBODY, PERMISSIONS, ROLES
from gpuaas_core.http.call import PUBLIC, REACHABLE
from gpuaas_core.iam.tables import role_bindings
from sqlalchemy import delete

from core.tests.support.fixtures import PASSWORD, Api, World, add_user, poll, sign_in
from core.tests.support.store_rows import PASSING, dump, rows

pytestmark = pytest.mark.any_store

ABSENT = "0" * 26


def _routes() -> list[tuple[str, str, str, str]]:
    """Method, path, permission key and scope of every route there is."""
    app = build_app(build_platform(None, None), loops=False)  # type: ignore[arg-type] - routes only
    found = []
    for route in api_routes(app):
        marks = route.openapi_extra or {}
        found += [(method, str(route.path), marks["x-permission"], marks["x-scope"]) for method in route.methods or ()]
    return sorted(found)


ROUTES = _routes()
GUARDED = [route for route in ROUTES if route[2] != PUBLIC]


def _fill(path: str, world: World) -> str:
    known = {"project_id": world.red, "tenant_id": world.tenant, "node_id": world.nodes[0], "app_slug": "echo"}
    for name in (
        "operation",
        "batch",
        "instance",
        "member",
        "orphan",
        "allocation",
        "account",
        "user",
        "key",
        "session",
        "binding",
        "rule",
        "invitation",
        "delegation",
        "break_glass",
        "provider",
        "credential",
        "task",
        "grant",
        "source",
        "artifact",
        "delivery",
    ):
        known[f"{name}_id"] = f"{name}_{ABSENT}"
    return path.format(
        **known,
        version="1.0.0",
        agent_version="current",
        role="night-shift",
        policy_name="house-rules",
        correlation_id=f"cor-{ABSENT}",
        sha256="0" * 64,
    )


async def _try(caller: Api, method: str, path: str, world: World) -> Any:
    if path.endswith("/stream"):  # an endless answer; the list beside it has the same key and scope
        path = path.removesuffix("/stream")
    return await caller.call(method, _fill(path, world), **({"json": {}} if method == "POST" else {}))


async def _other_tenant(world: World) -> Api:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    person = {"email": "boss@other.example", "name": "Other boss", "password": PASSWORD}
    boss = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    await world.admin.ok(f"/v1/tenants/{other}/role-bindings", {"principal_id": boss, "role": "tenant_admin"})
    return await sign_in(world.api, "boss@other.example")


def test_the_route_table_is_seen_in_full() -> None:
    assert len(ROUTES) > 50, "api_routes() does not find the routes: then the start-up check checks nothing"
    public = {path for _, path, key, _ in ROUTES if key == PUBLIC}
    doors = {"/v1/sign-in", "/v1/auth/session", "/v1/token", "/v1/enrol", "/v1/renew-identity"}
    doors |= {"/v1/invitations/accept", "/v1/agent", "/v1/agent/install.py", "/v1/agent/{agent_version}"}
    doors |= {"/v1/auth/providers"} | {f"/v1/auth/oidc/{word}" for word in ("{provider_id}/start", "callback", "token")}
    assert public == {"/v1", "/healthz", "/readyz"} | doors
    assert {key for *_, key, _ in ROUTES} - {PUBLIC} <= PERMISSIONS.keys()


@pytest.mark.parametrize("extra", [None, {}, {"x-permission": "made.up.key"}])
def test_a_route_without_a_known_permission_key_stops_the_start(extra: dict[str, str] | None) -> None:
    router = APIRouter()

    @router.get("/v1/forgotten", openapi_extra=extra)
    async def forgotten() -> None: ...

    app = FastAPI(openapi_url=None)
    app.include_router(router)
    with pytest.raises(RuntimeError, match="/v1/forgotten"):
        check_routes(app)


async def test_no_route_is_open_without_a_token(world: World) -> None:
    before = dump(world.platform)
    for method, path, _, _ in GUARDED:
        for caller in (world.api.as_(None), world.api.as_("gpt_made-up")):
            refused = await _try(caller, method, path, world)
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated"), f"{method} {path}"
            assert refused.headers["www-authenticate"].startswith("Bearer")
    assert dump(world.platform) == before


async def test_other_tenants_and_other_projects_controllers_find_nothing_here(world: World) -> None:
    strangers = {"the other tenant's admin": await _other_tenant(world), "a user without a role": None}
    strangers["a user without a role"], _ = await add_user(world, "new@acme.example", None)
    told = PASSING | {"audit", "event_heads"}  # the tenant finds the attempts in its trail: test_refused_across.py
    before = dump(world.platform, without=told)
    for method, path, _, scope in GUARDED:
        if scope in ("project", "tenant", "node", "operation"):
            for who, caller in strangers.items():
                refused = await _try(caller, method, path, world)
                assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), f"{who}: {method} {path}"
        if scope == "project":
            for who, caller in {"the blue controller": world.blue_controller, "a machine": world.machine}.items():
                refused = await _try(caller, method, path, world)
                assert (refused.status_code, refused.json()["code"]) == (404, "not_found"), f"{who}: {method} {path}"
    assert dump(world.platform, without=told) == before


async def test_a_viewer_may_do_what_its_role_says_and_nothing_else(world: World) -> None:
    for method, path, key, scope in GUARDED:
        answer = await _try(world.viewer, method, path, world)
        where = f"{method} {path}: {answer.text}"
        if key in EVERYBODY or scope == REACHABLE or (scope == "project" and key in ROLES["project_viewer"]):
            assert answer.status_code != 403, where
        elif scope in ("project", "platform"):
            assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), where
            assert repr(key) in answer.json()["detail"]
        else:
            assert answer.status_code == 404, where
        if path == "/v1/sign-out":
            world.viewer = await sign_in(world.api, "viewer@acme.example")


async def test_the_platform_admin_does_not_look_into_projects(world: World) -> None:
    await world.running()
    for method, path, _, scope in GUARDED:
        if scope == "project":
            refused = await _try(world.admin, method, path, world)
            assert refused.status_code == 404, f"{method} {path}"
    assert (await world.admin.get("/v1/projects")).json()["items"] == []
    assert (await world.admin.get(f"/v1/tenants/{world.tenant}/events")).status_code == 403


@pytest.mark.parametrize("noun", ["instances", "operations", "allocations"])
async def test_a_thing_of_another_project_does_not_exist(world: World, noun: str) -> None:
    accepted = await world.deploy()
    ids = {
        "instances": accepted["instance"]["id"],
        "operations": accepted["operation"]["id"],
        "allocations": world.allocations[0],
    }
    theirs = await world.boss.get(f"/v1/projects/{world.blue}/{noun}/{ids[noun]}")
    absent = await world.boss.get(f"/v1/projects/{world.blue}/{noun}/{ids[noun].split('_')[0]}_{ABSENT}")
    assert theirs.status_code == absent.status_code == 404
    assert _shape(theirs) == _shape(absent)
    listed = await world.boss.get(f"/v1/projects/{world.blue}/{noun}")
    assert ids[noun] not in listed.text


async def test_what_exists_elsewhere_looks_exactly_like_what_does_not_exist(world: World) -> None:
    stranger = await _other_tenant(world)
    places = {
        f"/v1/projects/{world.red}": f"/v1/projects/prj_{ABSENT}",
        f"/v1/tenants/{world.tenant}": f"/v1/tenants/ten_{ABSENT}",
        f"/v1/nodes/{world.nodes[0]}": f"/v1/nodes/node_{ABSENT}",
        f"/v1/projects/{world.red}/instances": f"/v1/projects/prj_{ABSENT}/instances",
    }
    for real, absent in places.items():
        assert _shape(await stranger.get(real)) == _shape(await stranger.get(absent)), real


def _shape(answer: Any) -> dict[str, Any]:
    """The whole answer but for what differs from request to request."""
    body = {name: value for name, value in answer.json().items() if name not in ("correlation_id", "trace_id")}
    headers = {name: value for name, value in answer.headers.items() if name not in ("x-correlation-id", "x-trace-id")}
    return {"status": answer.status_code, "body": body, "headers": headers}


async def test_a_refusal_is_recorded_with_its_correlation_id(world: World) -> None:
    headers = {"X-Correlation-Id": "ticket-4711-try-2"}
    body = world.deploy_body(world.allocations[0])
    refused = await world.viewer.post(f"/v1/projects/{world.red}/instances", body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
    assert refused.json()["correlation_id"] == refused.headers["x-correlation-id"] == "ticket-4711-try-2"
    (entry,) = rows(world.platform, "select * from audit where correlation_id = 'ticket-4711-try-2'")
    assert entry["outcome"] == "denied"
    assert entry["actor_id"] == world.viewer_id
    assert entry["permission"] == "apps.instance.create"
    assert entry["project_id"] == world.red
    seen = (await world.boss.get(f"/v1/tenants/{world.tenant}/audit?limit=1000")).json()["items"]
    assert [one["outcome"] for one in seen if one["correlation_id"] == "ticket-4711-try-2"] == ["denied"]


async def test_a_disabled_service_account_is_dead_on_its_next_request(world: World) -> None:
    assert (await world.controller.get("/v1/whoami")).status_code == 200
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")
    refused = await world.controller.get("/v1/whoami")
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")
    assert (await world.second.get("/v1/whoami")).status_code == 200


async def test_a_lost_role_is_lost_on_the_next_request(world: World) -> None:
    path = f"/v1/projects/{world.red}/instances"
    assert (await world.viewer.get(path)).status_code == 200
    lose = delete(role_bindings).where(role_bindings.c.principal_id == world.viewer_id)
    world.platform.db.write_now(lambda tx: tx.execute(lose))
    assert (await world.viewer.get(path)).status_code == 404


async def test_a_machine_reports_only_as_itself(world: World) -> None:
    assert (await world.machine.get(f"/v1/nodes/{world.nodes[0]}")).status_code == 404
    assert (await poll(world.nodes[0], world.machine, 99)).status_code == 404
    assert (await poll(world.nodes[2], world.machine)).status_code == 200
    assert (await poll(world.nodes[2], world.boss)).status_code == 403


@pytest.mark.parametrize(
    ("grantor", "role", "code"),
    [
        ("admin", "project_viewer", "grant_exceeds_own"),
        ("admin", "project_admin", "grant_exceeds_own"),
        ("boss", "platform_admin", "role_not_bindable"),
        ("boss", "platform_ops", "role_not_bindable"),
        ("boss", "node_agent", "role_not_bindable"),
        ("boss", "app_operator", "role_not_bindable"),
        ("boss", "made_up", "role_not_bindable"),
        ("viewer", "project_viewer", "not_found"),
    ],
)
async def test_a_person_cannot_grant_what_they_do_not_hold(world: World, grantor: str, role: str, code: str) -> None:
    before = dump(world.platform, without={"audit", "event_heads", "sessions"})
    body = {"principal_id": world.viewer_id, "role": role}
    caller: Api = getattr(world, grantor)
    refused = await caller.post(f"/v1/tenants/{world.tenant}/role-bindings", body)
    assert refused.json()["code"] == code
    assert dump(world.platform, without={"audit", "event_heads", "sessions"}) == before


async def test_an_attempt_to_grant_too_much_is_recorded(world: World) -> None:
    headers = {"X-Correlation-Id": "greedy-attempt"}
    body = {"principal_id": world.viewer_id, "role": "project_admin"}
    refused = await world.admin.post(f"/v1/tenants/{world.tenant}/role-bindings", body, headers=headers)
    assert refused.status_code == 403
    (entry,) = rows(world.platform, "select * from audit where correlation_id = 'greedy-attempt'")
    assert entry["outcome"] == "denied"


@pytest.mark.parametrize("role", ["tenant_admin", "platform_admin", "node_agent"])
async def test_a_project_admin_cannot_make_a_service_account_stronger_than_a_project(world: World, role: str) -> None:
    lead, _ = await add_user(world, "lead@acme.example", "project_admin", project=world.red)
    body = {"name": "strong", "public_jwk": world.controller_key.as_dict(private=False), "roles": [role]}
    refused = await lead.post(f"/v1/projects/{world.red}/service-accounts", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "role_not_bindable")
    assert rows(world.platform, "select id from principals where name = 'strong'") == []


async def test_a_service_account_gets_no_role_outside_its_project(world: World) -> None:
    for project in (world.blue, None):
        body = {"principal_id": world.controller_id, "role": "project_viewer", "project_id": project}
        refused = await world.boss.post(f"/v1/tenants/{world.tenant}/role-bindings", body)
        assert (refused.status_code, refused.json()["code"]) == (422, "role_not_bindable")


async def test_a_tenant_admin_binds_no_account_of_another_tenant(world: World) -> None:
    stranger = (await (await _other_tenant(world)).get("/v1/whoami")).json()["principal"]["id"]
    body = {"principal_id": stranger, "role": "tenant_admin"}
    refused = await world.boss.post(f"/v1/tenants/{world.tenant}/role-bindings", body)
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")


async def test_a_signed_out_token_is_dead(world: World) -> None:
    assert (await world.boss.post("/v1/sign-out")).status_code == 204
    refused = await world.boss.get("/v1/whoami")
    assert (refused.status_code, refused.json()["code"]) == (401, "token_expired")


async def test_whoami_says_what_one_may_see(world: World) -> None:
    viewer = (await world.viewer.get("/v1/whoami")).json()
    assert [project["id"] for project in viewer["projects"]] == [world.red]
    assert viewer["projects"][0]["roles"] == ["project_viewer"]
    boss = (await world.boss.get("/v1/whoami")).json()
    assert {project["id"] for project in boss["projects"]} == {world.red, world.blue}


@pytest.mark.parametrize("given", ["short", "has space here", "x" * 129, "new\tline-in-it"])
async def test_a_correlation_id_we_would_not_log_is_replaced(world: World, given: str) -> None:
    answer = await world.boss.get("/v1/whoami", headers={"X-Correlation-Id": given})
    assert answer.headers["x-correlation-id"] != given
    assert len(answer.headers["x-correlation-id"]) >= 8


async def test_a_trace_is_continued(world: World) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    answer = await world.boss.get("/v1/whoami", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert answer.headers["x-trace-id"] == trace


async def test_a_revoked_reader_loses_its_open_long_poll(world: World) -> None:
    path = f"/v1/projects/{world.red}/events?after={await _head(world)}&wait_s=20"
    waiting = asyncio.create_task(world.controller.get(path))
    await asyncio.sleep(0.1)
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")
    assert (await asyncio.wait_for(waiting, 15)).status_code == 401


async def _head(world: World) -> int:
    return (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]
