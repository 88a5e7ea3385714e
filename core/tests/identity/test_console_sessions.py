"""Console sessions: a cookie that no other page can use, that ends when it is not used, and that no other route accepts."""

from typing import Any

import httpx2
import pytest

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import PASSWORD, MovableClock, World, add_user
from core.tests.support.store_rows import one, rows

SIGN_IN = {"email": "boss@acme.example", "password": PASSWORD}
HERE = {"Origin": "http://core"}


class Browser:
    """Keeps cookies as browsers do, and sends what it is told to."""

    def __init__(self, http: httpx2.AsyncClient, cookie: str, csrf: str) -> None:
        self.http, self.cookie, self.csrf = http, cookie, csrf

    async def send(self, method: str, path: str, **headers: str) -> httpx2.Response:
        sent = {"Cookie": self.cookie, "Idempotency-Key": "k" * 32} | {
            k.replace("_", "-"): v for k, v in headers.items()
        }
        return await self.http.request(method, path, headers=sent, **({"json": {}} if method == "POST" else {}))


async def browser(world: World, **more: Any) -> tuple[Browser, httpx2.Response]:
    answer = await world.api.http.post("/v1/auth/session", json=SIGN_IN | more, headers=HERE)
    assert answer.status_code == 200, answer.text
    world.api.http.cookies.clear()
    cookie = answer.headers.get_list("set-cookie")[0].split(";")[0]
    return Browser(world.api.http, cookie, answer.json()["csrf_token"]), answer


async def test_the_token_is_only_in_a_cookie_no_script_reads(world: World) -> None:
    _, answer = await browser(world)
    session, csrf = answer.headers.get_list("set-cookie")
    name, token = session.split(";")[0].split("=", 1)
    assert name == "__Host-gpuaas-session"
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= set(session.split("; "))
    assert "Domain" not in session
    assert "HttpOnly" not in csrf
    assert token not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert token not in str(rows(world.platform, "select * from sessions"))


async def test_on_the_machine_itself_the_cookie_works_without_tls(world: World) -> None:
    answer = await world.api.http.post("http://127.0.0.1/v1/auth/session", json=SIGN_IN)
    session = answer.headers.get_list("set-cookie")[0]
    assert session.startswith("gpuaas-session=gpc_")
    assert "Secure" not in session


async def test_reading_needs_the_cookie_and_changing_also_the_csrf_token(world: World) -> None:
    at, _ = await browser(world)
    assert (await at.send("GET", "/v1/whoami")).json()["principal"]["id"] == world.boss_id
    assert (await at.send("GET", "/v1/auth/session")).json()["csrf_token"] == at.csrf
    check_problem(await at.send("POST", "/v1/sign-out", **HERE), 403, "csrf_token_wrong")
    check_problem(await at.send("POST", "/v1/sign-out", X_CSRF_Token="x" * 43, **HERE), 403, "csrf_token_wrong")
    other, _ = await browser(world)
    check_problem(await at.send("POST", "/v1/sign-out", X_CSRF_Token=other.csrf, **HERE), 403, "csrf_token_wrong")
    done = await at.send("POST", "/v1/sign-out", X_CSRF_Token=at.csrf, **HERE)
    assert done.status_code == 204
    assert all("Max-Age=0" in cookie for cookie in done.headers.get_list("set-cookie"))
    check_problem(await at.send("GET", "/v1/whoami"), 401, "token_expired")


@pytest.mark.parametrize(
    "where",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://core.evil.example"},
        {"Origin": "http://core", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ],
    ids=str,
)
async def test_another_sites_page_changes_nothing_even_with_the_token(world: World, where: dict[str, str]) -> None:
    at, _ = await browser(world)
    check_problem(await at.send("POST", "/v1/sign-out", X_CSRF_Token=at.csrf, **where), 403, "csrf_origin_refused")
    assert (await at.send("GET", "/v1/whoami")).status_code == 200


async def test_another_sites_page_signs_no_account_in(world: World) -> None:
    answer = await world.api.http.post("/v1/auth/session", json=SIGN_IN, headers={"Origin": "https://evil.example"})
    check_problem(answer, 403, "csrf_origin_refused")


async def test_a_bearer_token_wins_over_the_cookie(world: World) -> None:
    at, _ = await browser(world)
    seen = await at.send("GET", "/v1/whoami", Authorization=f"Bearer {world.viewer.token}")
    assert seen.json()["principal"]["id"] == world.viewer_id
    done = await at.send("POST", "/v1/sign-out", Authorization=f"Bearer {world.viewer.token}")
    assert done.status_code == 204, "a bearer token needs no CSRF token"
    check_problem(await at.send("GET", "/v1/whoami", Authorization="Bearer wrong"), 401, "unauthenticated")


async def test_the_cookies_token_works_nowhere_else(world: World) -> None:
    at, _ = await browser(world)
    name, token = at.cookie.split("=", 1)
    bare = world.api.http
    check_problem(await bare.get("/v1/whoami", params={name: token, "access_token": token}), 401, "unauthenticated")
    check_problem(await world.api.as_(token).get("/v1/whoami"), 401, "unauthenticated")
    plain = {"Cookie": f"gpuaas-session={token}"}
    check_problem(await bare.get("/v1/whoami", headers=plain), 401, "unauthenticated")
    bearer = {"Cookie": f"{name}={world.boss.token}"}
    check_problem(await bare.get("/v1/whoami", headers=bearer), 401, "unauthenticated")


async def test_an_idle_console_is_signed_out_and_a_used_one_after_half_a_day(world: World, clock: MovableClock) -> None:
    at, _ = await browser(world)
    clock.forward(3601)
    check_problem(await at.send("GET", "/v1/whoami"), 401, "token_expired")
    at, _ = await browser(world)
    for _ in range(14):
        clock.forward(3000)
        assert (await at.send("GET", "/v1/whoami")).status_code == 200
    clock.forward(1300)
    check_problem(await at.send("GET", "/v1/whoami"), 401, "token_expired")


async def test_signing_out_and_making_an_administrator_leave_a_row(world: World) -> None:
    await world.boss.ok("/v1/sign-out", headers={"X-Correlation-Id": "signed-out"})
    (row,) = rows(world.platform, "select * from audit where correlation_id = 'signed-out'")
    assert (row["tenant_id"], row["actor_id"], row["permission"]) == (world.tenant, world.boss_id, "identity.self.use")
    assert row["resource_id"].startswith("ses_")
    made = "select count(*) from audit where permission = 'platform.admin.create' and actor_id = 'operator'"
    assert one(world.platform, made) == 1


async def test_an_address_of_another_tenant_is_unknown_here(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    person = {"email": "boss@acme.example", "name": "Other boss", "password": "quite another password"}
    theirs = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    check_problem(await world.admin.post(f"/v1/tenants/{other}/users", person), 409, "email_taken")
    for password, who in ((PASSWORD, world.boss_id), (person["password"], theirs)):
        token = (await world.api.ok("/v1/sign-in", {"email": person["email"], "password": password}))["access_token"]
        assert (await world.api.as_(token).get("/v1/whoami")).json()["principal"]["id"] == who
    await world.admin.ok(f"/v1/tenants/{other}/invitations", {"email": "viewer@acme.example", "name": "Viewer"})


async def test_the_same_address_and_password_in_two_tenants_need_the_tenants_name(world: World) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    person = {"email": "boss@acme.example", "name": "Other boss", "password": PASSWORD}
    theirs = (await world.admin.ok(f"/v1/tenants/{other}/users", person))["id"]
    check_problem(await world.api.as_(None).post("/v1/sign-in", SIGN_IN), 409, "tenant_needed")
    opened = await world.api.ok("/v1/sign-in", SIGN_IN | {"tenant": "other"})
    assert opened["principal_id"] == theirs
    await add_user(world, "new@acme.example", None)
