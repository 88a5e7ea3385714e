"""Signing in through an OpenID provider: with a real one, and with one that lies in every way a real one will not."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import PUBLIC_URL, Api, MovableClock, World
from core.tests.support.oidc_issuers import SECRET, Forger, forger, real_provider, sign_in_there
from core.tests.support.store_rows import one, rows

HERE = "http://127.0.0.1"  # as a browser on the machine itself: cookies without TLS


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    with real_provider(f"{PUBLIC_URL}/v1/auth/oidc/callback") as issuer:
        yield issuer


@pytest.fixture
def liar() -> Iterator[Forger]:
    with forger() as one:
        yield one


@pytest.fixture(autouse=True)
def real_time(clock: MovableClock) -> None:
    """The provider is another program, and has no other."""
    clock.offset = 0


async def add_provider(world: World, issuer: str, **more: Any) -> Any:
    body = {"name": "Acme", "issuer": issuer, "client_id": "public"} | more
    return await world.boss.ok(f"/v1/tenants/{world.tenant}/identity-providers", body)


class Browser:
    def __init__(self, world: World) -> None:
        self.http, self.cookies = world.api.http, {}

    async def get(self, path: str) -> httpx2.Response:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = await self.http.get(f"{HERE}{path}", headers={"Cookie": sent} if sent else {})
        self.http.cookies.clear()
        for cookie in answer.headers.get_list("set-cookie"):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer

    async def start(self, provider: Any, query: str = "") -> str:
        answer = await self.get(f"/v1/auth/oidc/{provider['id']}/start{query}")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def back(self, where: str) -> httpx2.Response:
        parts = urlsplit(where)
        return await self.get(f"{parts.path}?{parts.query}")


@pytest.mark.parametrize(
    "client", [{}, {"client_id": "confidential", "client_secret": SECRET}], ids=["public", "secret"]
)
async def test_the_whole_way_with_a_real_provider(world: World, real: str, client: dict[str, str]) -> None:
    provider, browser = await add_provider(world, real, **client), Browser(world)
    assert provider["confidential"] == bool(client)
    assert SECRET not in json.dumps(provider)
    asked = parse_qs(urlsplit(there := await browser.start(provider)).query)
    assert (asked["code_challenge_method"], asked["response_type"]) == (["S256"], ["code"])
    back = await sign_in_there(there, "boss")
    arrived = await browser.back(back)
    assert (arrived.status_code, arrived.headers["location"]) == (303, "/")
    me = (await browser.get("/v1/whoami")).json()
    assert me["principal"]["id"] == world.boss_id, "the member with the verified address"
    check_problem(await browser.back(back), 401, "oidc_state_invalid")
    (link,) = rows(world.platform, "select * from linked_identities")
    assert (link["issuer"], link["subject"], link["principal_id"]) == (real, "boss", world.boss_id)
    linked = "select count(*) from audit where reason like 'verified by%' and actor_id = :b"
    assert one(world.platform, linked, b=world.boss_id) == 1


@pytest.mark.parametrize(
    ("login", "more", "why"),
    [
        ("unverified", {}, "verified"),
        ("stranger", {}, "invitation"),
        ("boss", {"email_domains": ["elsewhere.example"]}, "domain"),
        ("ada@else.example", {"email_domains": ["acme.example"], "default_role": "project_viewer"}, "domain"),
    ],
)
async def test_the_real_provider_knows_people_we_do_not_let_in(
    world: World, real: str, login: str, more: dict[str, Any], why: str
) -> None:
    provider, browser = await add_provider(world, real, **more), Browser(world)
    refused = check_problem(
        await browser.back(await sign_in_there(await browser.start(provider), login)), 401, "oidc_refused"
    )
    assert why in refused["detail"]
    assert rows(world.platform, "select * from linked_identities") == []
    check_problem(await browser.get("/v1/whoami"), 401, "unauthenticated")


async def test_an_invited_person_and_a_newcomer_get_an_account_without_a_password(world: World, real: str) -> None:
    invited = {"email": "ada@acme.example", "name": "Ada", "role": "project_viewer", "project_id": world.red}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/invitations", invited)
    rule = {"email_domains": ["acme.example"], "default_role": "project_member"}
    for login, more, role in (("ada", {}, "project_viewer"), ("newcomer", rule, "project_member")):
        provider, browser = await add_provider(world, real, **more), Browser(world)
        await browser.back(await sign_in_there(await browser.start(provider), login))
        me = (await browser.get("/v1/whoami")).json()
        assert (me["principal"]["email"], me["roles"][0]["role"]) == (f"{login}@acme.example", role)
        who = me["principal"]["id"]
        assert one(world.platform, "select password_hash from principals where id = :i", i=who) is None
        again = Browser(world)
        await again.back(await sign_in_there(await again.start(provider), login))
        assert (await again.get("/v1/whoami")).json()["principal"]["id"] == who


async def test_a_cli_signs_in_with_a_code_only_it_can_use(world: World, real: str) -> None:
    provider, browser = await add_provider(world, real), Browser(world)
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    there = await browser.start(provider, f"?challenge={challenge}&port=45678")
    arrived = await browser.back(await sign_in_there(there, "boss"))
    assert arrived.headers["location"].startswith("http://127.0.0.1:45678/?code=")
    assert "gpuaas-session" not in browser.cookies
    code = parse_qs(urlsplit(arrived.headers["location"]).query)["code"][0]
    stranger = {"code": code, "verifier": "w" * 43}
    check_problem(await world.api.http.post("/v1/auth/oidc/token", json=stranger), 401, "oidc_state_invalid")
    token = (await world.api.ok("/v1/auth/oidc/token", {"code": code, "verifier": verifier}))["access_token"]
    assert (await Api(world.api.http, token).get("/v1/whoami")).json()["principal"]["id"] == world.boss_id
    mine = {"code": code, "verifier": verifier}
    check_problem(await world.api.http.post("/v1/auth/oidc/token", json=mine), 401, "oidc_state_invalid")


async def _attempt(world: World, liar: Forger, browser: Browser, **more: Any) -> httpx2.Response:
    """A sign-in at the provider that lies: it answers with whatever claims it was told, over the right nonce."""
    provider = await add_provider(world, liar.issuer, **more)
    asked = parse_qs(urlsplit(await browser.start(provider)).query)
    liar.nonce = asked["nonce"][0]
    liar.claims = liar.good(world.now()) | liar.claims
    return await browser.back(f"/v1/auth/oidc/callback?code=any&state={asked['state'][0]}")


async def test_the_second_provider_can_tell_the_truth(world: World, liar: Forger) -> None:
    browser = Browser(world)
    assert (await _attempt(world, liar, browser)).status_code == 303
    assert (await browser.get("/v1/whoami")).status_code == 200


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "another-client"}, "another client"),
        ({"aud": ["public", "another-client"]}, "another client"),
        ({"azp": "another-client"}, "another client"),
        ({"nonce": "of-another-sign-in"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"iss": "https://accounts.example"}, "another issuer"),
        ({"exp": 1_700_000_000}, "expired"),
        ({"exp": None}, "no iat or exp"),
        ({"iat": 4_000_000_000, "exp": 4_000_000_300}, "future"),
        ({"email_verified": False}, "verified"),
        ({"email_verified": "true"}, "verified"),
        ({"email": None}, "address"),
        ({"sub": ""}, "no sub"),
    ],
    ids=str,
)
async def test_an_id_token_that_says_the_wrong_thing_is_refused(
    world: World, liar: Forger, claims: dict[str, Any], why: str
) -> None:
    liar.claims, browser = claims, Browser(world)
    refused = check_problem(await _attempt(world, liar, browser), 401, "oidc_refused")
    assert why in refused["detail"]
    check_problem(await browser.get("/v1/whoami"), 401, "unauthenticated")


def _segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("trick", ["none", "hs256", "another key", "no key", "not a token"])
async def test_an_unsigned_id_token_is_refused(world: World, liar: Forger, trick: str) -> None:
    browser, provider = Browser(world), await add_provider(world, liar.issuer)
    asked = parse_qs(urlsplit(await browser.start(provider)).query)
    liar.nonce = asked["nonce"][0]
    claims = liar.good(world.now())
    signed = f"{_segment({'alg': 'HS256', 'kid': 'first'})}.{_segment(claims)}"
    secret = liar.key.as_pem(private=False)
    mac = base64.urlsafe_b64encode(hmac.new(secret, signed.encode(), hashlib.sha256).digest()).decode().rstrip("=")
    other = RSAKey.generate_key(2048)
    liar.raw = {
        "none": f"{_segment({'alg': 'none', 'kid': 'first'})}.{_segment(claims)}.",
        "hs256": f"{signed}.{mac}",
        "another key": jwt.encode({"alg": "RS256", "kid": "first"}, claims, other),
        "no key": jwt.encode({"alg": "RS256", "kid": "unknown"}, claims, other),
        "not a token": "a.b.c",
    }[trick]
    back = f"/v1/auth/oidc/callback?code=any&state={asked['state'][0]}"
    check_problem(await browser.get(back), 401, "oidc_refused")
    check_problem(await browser.get("/v1/whoami"), 401, "unauthenticated")


async def test_a_published_shared_secret_is_no_key(world: World, liar: Forger) -> None:
    oct_key = OctKey.generate_key(256, {"kid": "first"})
    liar.published, liar.key, liar.header = [oct_key], oct_key, {"alg": "HS256", "kid": "first"}  # type: ignore[list-item]
    check_problem(await _attempt(world, liar, Browser(world)), 401, "oidc_refused")


async def test_new_keys_are_fetched_when_they_are_met_but_not_for_every_stranger(
    world: World, liar: Forger, clock: MovableClock
) -> None:
    assert (await _attempt(world, liar, Browser(world))).status_code == 303
    liar.key = RSAKey.generate_key(2048, {"kid": "second", "use": "sig"})
    liar.published, liar.header, liar.claims = [liar.key], {"alg": "RS256", "kid": "second"}, {}
    check_problem(await _attempt(world, liar, Browser(world)), 401, "oidc_refused")
    clock.forward(11)
    liar.claims = {}
    assert (await _attempt(world, liar, Browser(world))).status_code == 303
    assert liar.asked.count("/jwks") == 2


async def test_a_sign_in_works_once_in_one_browser_and_for_ten_minutes(
    world: World, liar: Forger, clock: MovableClock
) -> None:
    provider, browser = await add_provider(world, liar.issuer), Browser(world)

    async def attempt() -> str:
        asked = parse_qs(urlsplit(await browser.start(provider)).query)
        liar.nonce = asked["nonce"][0]
        liar.claims = liar.good(world.now())
        return f"/v1/auth/oidc/callback?code=any&state={asked['state'][0]}"

    back = await attempt()
    check_problem(await Browser(world).get(back), 401, "oidc_state_invalid")
    assert (await browser.get(back)).status_code == 303, "the other browser did not use it up"
    check_problem(await browser.get(back), 401, "oidc_state_invalid")
    late = await attempt()
    clock.forward(601)
    check_problem(await browser.get(late), 401, "oidc_state_invalid")
    check_problem(await browser.get("/v1/auth/oidc/callback?code=any&state=made-up"), 401, "oidc_state_invalid")
    check_problem(await browser.get(f"{await attempt()}&iss=https://other.example"), 401, "oidc_refused")
    check_problem(await browser.get(f"{await attempt()}&error=access_denied"), 401, "oidc_refused")


async def test_an_address_that_moved_to_another_person_does_not_carry_the_account(world: World, liar: Forger) -> None:
    assert (await _attempt(world, liar, Browser(world))).status_code == 303
    liar.claims = {"sub": "the-next-boss"}
    refused = check_problem(await _attempt(world, liar, Browser(world)), 401, "oidc_refused")
    assert "another person" in refused["detail"]


async def test_a_provider_speaks_only_for_the_tenant_that_trusts_it(world: World, liar: Forger) -> None:
    other = (await world.admin.ok("/v1/tenants", {"slug": "other", "name": "Other"}))["id"]
    make = "insert into identity_providers (id, tenant_id, name, issuer, client_id, email_domains, scopes, created_by, created_at)"
    from sqlalchemy import text

    values = {"t": other, "i": liar.issuer, "b": world.boss_id}
    insert = text(f"{make} values ('idp_evil', :t, 'Evil', :i, 'public', '[]', '[\"openid\"]', :b, 1)")
    world.platform.db.write_now(lambda tx: tx.execute(insert, values))
    browser = Browser(world)
    asked = parse_qs(urlsplit(await browser.start({"id": "idp_evil"})).query)
    liar.nonce = asked["nonce"][0]
    liar.claims = liar.good(world.now())
    refused = await browser.get(f"/v1/auth/oidc/callback?code=any&state={asked['state'][0]}")
    assert "invitation" in check_problem(refused, 401, "oidc_refused")["detail"], (
        "boss@acme.example is of another tenant"
    )


async def test_a_provider_that_names_another_issuer_or_is_silent_is_not_asked(world: World, liar: Forger) -> None:
    liar.names_itself = "https://accounts.example"
    provider = await add_provider(world, liar.issuer)
    check_problem(await Browser(world).get(f"/v1/auth/oidc/{provider['id']}/start"), 401, "oidc_refused")
    silent = await add_provider(world, "http://127.0.0.1:9")
    check_problem(await Browser(world).get(f"/v1/auth/oidc/{silent['id']}/start"), 502, "issuer_unreachable")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"issuer": "http://accounts.example"}, "issuer_not_accepted"),
        ({"issuer": "https://user@accounts.example"}, "issuer_not_accepted"),
        ({"issuer": "ftp://accounts.example"}, "invalid_request"),
        ({"default_role": "project_viewer"}, "email_domains_needed"),
        ({"default_role": "platform_admin", "email_domains": ["acme.example"]}, "role_not_bindable"),
    ],
    ids=str,
)
async def test_a_provider_that_would_be_dangerous_is_refused(world: World, body: dict[str, Any], code: str) -> None:
    whole = {"name": "Acme", "issuer": "https://accounts.example", "client_id": "public"} | body
    path = f"/v1/tenants/{world.tenant}/identity-providers"
    check_problem(await world.boss.post(path, whole), 422, code)


async def test_a_provider_is_changed_and_deleted(world: World) -> None:
    provider = await add_provider(world, "https://accounts.example", client_secret="first-secret")
    path = f"/v1/tenants/{world.tenant}/identity-providers/{provider['id']}"
    changed = await world.boss.ok(f"{path}/update", {"email_domains": ["acme.example"], "client_secret": None})
    assert (changed["email_domains"], changed["confidential"], changed["name"]) == (["acme.example"], False, "Acme")
    assert (await world.boss.get(path)).json() == changed
    await world.boss.ok(f"{path}/delete")
    check_problem(await world.boss.get(path), 404, "not_found")
    check_problem(await Browser(world).get(f"/v1/auth/oidc/{provider['id']}/start"), 404, "not_found")
