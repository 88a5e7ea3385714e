"""The console's files beside the API: a page for browsers, nothing of it below /v1, no foreign script."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from gpuaas_core.http.console_files import Console

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import World, add_user

PAGE = (
    '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><script type="module" src="/assets/a-1.js"></script>'
)
BROWSER = {"Sec-Fetch-Mode": "navigate", "Accept": "text/html"}


@pytest.fixture
async def http(world: World, tmp_path: Path) -> AsyncIterator[httpx2.AsyncClient]:
    """The world's API with a small console before it."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "assets/a-1.js").write_text("console.log(1);" * 200)
    api = world.api.http._transport.app  # type: ignore[attr-defined]
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=Console(api, folder)), base_url="http://core"
    ) as http:
        yield http


@pytest.mark.parametrize("path", ["/", "/sign-in", "/projects/prj_1/instances", "/index.html"])
async def test_a_browser_gets_the_page(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert "/assets/a-1.js" in answer.text


@pytest.mark.parametrize("headers", [{}, {"Accept": "*/*"}, {"Accept": "application/json"}])
async def test_the_first_address_is_the_page_for_every_client(
    http: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    answer = await http.get("/", headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "/assets/a-1.js" in answer.text


async def test_what_the_api_answers_is_stored_and_guessed_at_by_no_browser(http: httpx2.AsyncClient) -> None:
    tried = [("GET", "/v1"), ("GET", "/healthz"), ("GET", "/v1/whoami"), ("GET", "/v1/nothing"), ("PUT", "/v1/whoami")]
    for method, path in tried:
        answer = await http.request(method, path)
        told = answer.headers["cache-control"], answer.headers["x-content-type-options"]
        assert told == ("no-store", "nosniff"), (method, path, answer.status_code)
    huge = await http.post("/v1/sign-in", content=b"x" * (2 << 20))
    assert (huge.status_code, huge.headers["cache-control"]) == (413, "no-store")


async def test_no_script_but_our_own_runs_and_every_answer_has_a_nonce_of_its_own(http: httpx2.AsyncClient) -> None:
    seen = set()
    for _ in range(2):
        answer = await http.get("/", headers=BROWSER)
        rules = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
        assert (rules["default-src"], rules["script-src"], rules["frame-ancestors"]) == ("'none'", "'self'", "'none'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        [nonce] = re.findall(r"'nonce-([^']+)'", rules["style-src"])
        assert f'content="{nonce}"' in answer.text
        seen.add(nonce)
    assert len(seen) == 2


@pytest.mark.parametrize("path", ["/v1/nothing", "/v1", "/healthz", "/readyz/x"])
async def test_below_the_api_anonymous_gets_the_page(http: httpx2.AsyncClient, path: str) -> None:
    answer = await http.get(path, headers=BROWSER)
    assert "json" in answer.headers["content-type"]


async def test_what_is_not_there_is_a_problem_for_programs_and_for_scripts(http: httpx2.AsyncClient) -> None:
    check_problem(await http.get("/projects/prj_1", headers={"Accept": "application/json"}), 404, "not_found")
    script = {"Sec-Fetch-Mode": "no-cors", "Accept": "text/html"}
    check_problem(await http.get("/assets/gone-1.js", headers=script), 404, "not_found")
    check_problem(await http.post("/", headers=BROWSER), 404, "not_found")


async def test_assets_are_kept_forever_packed_and_not_sent_twice(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/assets/a-1.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.text.startswith("console.log(1);")
    again = await http.get("/assets/a-1.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_no_path_leads_out_of_the_folder(http: httpx2.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    for path in ("/../secret", "/%2e%2e/secret", "/assets/%2e%2e/%2e%2e/secret", "//secret"):
        assert "secret" not in (await http.get(path, headers={"Accept": "*/*"})).text.replace("/secret", "")


async def test_without_a_built_console_the_page_says_how_to_get_one(world: World, tmp_path: Path) -> None:
    console = Console(world.api.http._transport.app, tmp_path / "none")  # type: ignore[attr-defined]
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=console), base_url="http://core") as http:
        assert "make console" in (await http.get("/", headers=BROWSER)).text


async def test_i_can_ask_for_every_key_i_hold(world: World) -> None:
    at = f"/v1/whoami/permissions?project_id={world.red}"
    viewer = (await world.viewer.get(at)).json()
    assert (viewer["scope_kind"], viewer["scope_id"]) == ("project", world.red)
    assert "apps.instance.read" in viewer["permissions"]
    assert "apps.instance.create" not in viewer["permissions"]
    for key in viewer["permissions"]:
        explained = await world.viewer.get(f"/v1/whoami/explain?permission={key}&project_id={world.red}")
        assert explained.json()["allowed"], key
    check_problem(await world.viewer.get(f"/v1/whoami/permissions?project_id={world.blue}"), 404, "not_found")
    deny = {"permissions": ["apps.instance.*"], "reason": "frozen"}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", deny)
    assert "apps.instance.read" not in (await world.viewer.get(at)).json()["permissions"]


async def test_a_sign_in_page_learns_the_ways_into_a_tenant_and_nothing_of_tenants(world: World) -> None:
    body = {"name": "Acme login", "issuer": "http://127.0.0.1:9", "client_id": "public"}
    made = await world.boss.ok(f"/v1/tenants/{world.tenant}/identity-providers", body)
    anonymous = world.api.as_(None)
    ways = (await anonymous.get("/v1/auth/providers?tenant=acme")).json()
    assert ways == {"items": [{"name": "Acme login", "start_url": made["start_url"]}]}
    await world.admin.ok("/v1/tenants", {"slug": "without", "name": "No provider"})
    without = (await anonymous.get("/v1/auth/providers?tenant=without")).json()
    assert without == (await anonymous.get("/v1/auth/providers?tenant=not-there")).json() == {"items": []}


async def test_events_of_one_thing_and_the_end_of_the_audit_trail_can_be_asked_for(world: World) -> None:
    made = await world.deploy()
    subject = made["operation"]["id"]
    found = (await world.boss.get(f"/v1/projects/{world.red}/events?subject={subject}")).json()["items"]
    assert found
    assert {one["subject"] for one in found} == {subject}
    await add_user(world, "late@acme.example", None)
    trail = f"/v1/tenants/{world.tenant}/audit"
    newest = (await world.boss.get(f"{trail}?before=0&limit=2")).json()
    first, second = (one["sequence"] for one in newest["items"])
    assert first == second + 1
    assert newest["items"][0]["permission"] == "tenancy.user.create"
    older = (await world.boss.get(f"{trail}?before={newest['next_after']}&limit=1")).json()["items"]
    assert older[0]["sequence"] == second - 1
