"""Proving who calls: passwords, client assertions and the tokens both lead to. Everything doubtful is refused."""

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import PASSWORD, Api, MovableClock, World, assertion, machine_token
from core.tests.support.store_rows import one, rows

BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


async def redeem(world: World, text: str, **changes: str) -> Any:
    form = {"grant_type": "client_credentials", "client_assertion_type": BEARER, "client_assertion": text}
    return await world.api.http.post("/v1/token", data=form | changes)


async def test_an_assertion_gives_a_token_for_fifteen_minutes(world: World, clock: MovableClock) -> None:
    answer = await redeem(world, assertion(world.controller_key, world.controller_id, now=world.now()))
    assert answer.status_code == 200
    assert (answer.json()["token_type"], answer.json()["expires_in"]) == ("Bearer", 900)
    caller = Api(world.api.http, answer.json()["access_token"])
    clock.forward(899)
    assert (await caller.get("/v1/whoami")).json()["principal"]["id"] == world.controller_id
    clock.forward(2)
    check_problem(await caller.get("/v1/whoami"), 401, "token_expired")


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://core.example/v1/token"},
        {"aud": ["gpuaas", "elsewhere"]},
        {"aud": None},
        {"iat": None},
        {"exp": None},
        {"exp": "soon"},
        {"exp": 1e12},
        {"jti": None},
        {"jti": "short"},
        {"jti": "x" * 129},
        {"jti": ["a", "list", "of", "things", "x", "y", "z", "0"]},
        {"sub": "sa_" + "0" * 26},
        {"iss": "sa_" + "0" * 26},
        {"iss": ["sa"]},
    ],
    ids=str,
)
async def test_an_assertion_that_says_the_wrong_thing_is_refused(world: World, changes: dict[str, Any]) -> None:
    sessions = one(world.platform, "select count(*) from sessions")
    text = assertion(world.controller_key, world.controller_id, now=world.now(), **changes)
    check_problem(await redeem(world, text), 401, "assertion_refused")
    assert one(world.platform, "select count(*) from sessions") == sessions


@pytest.mark.parametrize(
    ("issued", "expires", "why"),
    [
        (-95, -35, "expired"),
        (40, 70, "from the future"),
        (0, 61, "lives a second too long"),
        (-3600, 30, "issued an hour ago"),
    ],
)
async def test_an_assertion_of_another_time_is_refused(world: World, issued: int, expires: int, why: str) -> None:
    times = {"iat": world.now() + issued, "exp": world.now() + expires}
    text = assertion(world.controller_key, world.controller_id, now=world.now(), **times)
    check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_an_assertion_works_once_also_when_sent_many_times_at_once(world: World) -> None:
    text = assertion(world.controller_key, world.controller_id, now=world.now())
    answers = await asyncio.gather(*(redeem(world, text) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [401] * 9
    check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_a_used_assertion_stays_used_until_it_is_too_old_anyway(world: World, clock: MovableClock) -> None:
    from gpuaas_core.background.housekeeping import tidy

    text = assertion(world.controller_key, world.controller_id, now=world.now())
    assert (await redeem(world, text)).status_code == 200
    for _ in range(10):
        clock.forward(10)
        tidy(world.platform, world.platform.clock())
        check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_only_the_registered_key_signs(world: World) -> None:
    text = assertion(OKPKey.generate_key("Ed25519"), world.controller_id, now=world.now())
    check_problem(await redeem(world, text), 401, "assertion_refused")


def _claims(world: World) -> dict[str, Any]:
    who = world.controller_id
    return {
        "iss": who,
        "sub": who,
        "aud": "gpuaas",
        "iat": world.now(),
        "exp": world.now() + 60,
        "jti": "a-jti-of-some-length",
    }


def _segment(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_an_unsigned_assertion_is_refused(world: World) -> None:
    for algorithm in ("none", "None", "NONE", ""):
        text = f"{_segment({'alg': algorithm})}.{_segment(_claims(world))}."
        check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_the_public_key_is_no_shared_secret(world: World) -> None:
    """The classic confusion: HS256 keyed with what everybody may know."""
    public = world.controller_key.as_dict(private=False)
    raw = base64.urlsafe_b64decode(public["x"] + "=")
    for secret in (raw, public["x"].encode(), json.dumps(public).encode(), world.controller_key.as_pem(private=False)):
        signed = f"{_segment({'alg': 'HS256'})}.{_segment(_claims(world))}"
        signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        text = f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
        check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_a_key_sent_along_is_not_believed(world: World) -> None:
    mine = OKPKey.generate_key("Ed25519")
    header = {"alg": "Ed25519", "jwk": mine.as_dict(private=False)}
    text = jwt.encode(header, _claims(world), mine, algorithms=["Ed25519"])
    check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_another_algorithm_than_the_keys_is_refused(world: World) -> None:
    elliptic = ECKey.generate_key("P-256")
    text = jwt.encode({"alg": "ES256"}, _claims(world), elliptic, algorithms=["ES256"])
    check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_a_service_account_may_also_have_a_p256_key(world: World) -> None:
    key = ECKey.generate_key("P-256")
    body = {"name": "elliptic", "public_jwk": key.as_dict(private=False)}
    account = await world.boss.ok(f"/v1/projects/{world.red}/service-accounts", body)
    claims = _claims(world) | {"iss": account["id"], "sub": account["id"]}
    text = jwt.encode({"alg": "ES256"}, claims, key, algorithms=["ES256"])
    assert (await redeem(world, text)).status_code == 200


async def test_a_disabled_account_gets_no_new_token(world: World) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")
    text = assertion(world.controller_key, world.controller_id, now=world.now())
    check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_a_person_has_no_assertion(world: World) -> None:
    text = assertion(world.controller_key, world.boss_id, now=world.now())
    check_problem(await redeem(world, text), 401, "assertion_refused")


@pytest.mark.parametrize(
    "text",
    ["", "x", "a.b.c", "..", "e30.e30.e30", "é.é.é", "e30." + _segment(None) + ".e30", _segment([]) + ".e30.e30"],
)
async def test_what_is_no_jwt_is_refused(world: World, text: str) -> None:
    assert (await redeem(world, text)).status_code in (401, 422)


async def test_a_jwt_that_is_hard_to_read_is_refused(world: World) -> None:
    """These are not signed: any client that reaches this address may send them."""
    header, deep = _segment({"alg": "Ed25519"}), base64.urlsafe_b64encode(b"[" * 2400).decode()
    for text in (f"{header}.{deep}.e30", f"{deep}.e30.e30", f"{header}.{_segment({'iss': chr(0xD800)})}.e30"):
        check_problem(await redeem(world, text), 401, "assertion_refused")


async def test_another_grant_is_refused(world: World) -> None:
    text = assertion(world.controller_key, world.controller_id, now=world.now())
    check_problem(await redeem(world, text, grant_type="password"), 401, "assertion_refused")
    check_problem(await redeem(world, text, client_assertion_type="saml"), 401, "assertion_refused")
    assert (await redeem(world, text)).status_code == 200, "the refusals did not use it up"


async def test_a_person_signs_in_with_the_right_password_only(world: World) -> None:
    for email, password in (
        ("boss@acme.example", "wrong password!"),
        ("unknown@acme.example", PASSWORD),
        ("boss@acme.example", PASSWORD + " "),
        ("boss@acme.example", "é" * 200),
    ):
        answer = await world.api.as_(None).post("/v1/sign-in", {"email": email, "password": password})
        problem = check_problem(answer, 401, "sign_in_refused")
        assert (
            problem["detail"]
            == "E-mail or password is wrong, or the account is disabled or was tried too often from this address."
        )
    good = {"email": "BOSS@acme.example", "password": PASSWORD}
    assert (await world.api.as_(None).post("/v1/sign-in", good)).status_code == 200


async def test_a_persons_token_lives_half_a_day(world: World, clock: MovableClock) -> None:
    clock.forward(12 * 3600 - 60)
    assert (await world.boss.get("/v1/whoami")).status_code == 200
    clock.forward(120)
    check_problem(await world.boss.get("/v1/whoami"), 401, "token_expired")


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic Ym9zczpib3Nz", "Bearer é", "gpt_alone", "Bearer a b"]
)
async def test_a_header_that_is_no_bearer_token_is_refused(world: World, header: str) -> None:
    answer = await world.api.as_(None).get("/v1/whoami", headers={"Authorization": header.encode("latin-1")})
    check_problem(answer, 401, "unauthenticated")


async def test_no_token_is_in_the_store_in_a_form_that_works(world: World) -> None:
    fresh = await machine_token(world.api, world.controller_key, world.controller_id, world.now())
    stored = json.dumps(rows(world.platform, "select * from sessions"))
    assert fresh.token is not None
    assert fresh.token not in stored
    for row in rows(world.platform, "select token_hash from sessions"):
        answer = await world.api.as_(row["token_hash"]).get("/v1/whoami")
        assert answer.status_code == 401
