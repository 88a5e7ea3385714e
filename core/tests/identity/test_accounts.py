"""Accounts: keys that follow each other, people's sessions and passwords, guessing, invitations."""

import asyncio
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OKPKey

from core.tests.http.test_bad_input import check_problem
from core.tests.identity.test_tokens import redeem
from core.tests.support.fixtures import PASSWORD, Api, MovableClock, World, add_user, assertion, machine_token, sign_in
from core.tests.support.store_rows import dump, one, rows

NEW = "another long password"


def _signed(key: OKPKey, world: World, who: str, kid: Any) -> str:
    claims = {"iss": who, "sub": who, "aud": "gpuaas", "iat": world.now(), "exp": world.now() + 60}
    header = {"alg": "Ed25519", "kid": kid}
    return jwt.encode(
        header, claims | {"jti": OKPKey.generate_key("Ed25519").thumbprint()}, key, algorithms=["Ed25519"]
    )


def _account(world: World) -> str:
    return f"/v1/projects/{world.red}/service-accounts/{world.controller_id}"


async def _add_key(world: World) -> tuple[OKPKey, str]:
    key = OKPKey.generate_key("Ed25519")
    added = await world.boss.ok(f"{_account(world)}/keys", {"public_jwk": key.as_dict(private=False)})
    return key, added["id"]


async def _keys(world: World) -> dict[str, Any]:
    return {key["id"]: key for key in (await world.boss.get(f"{_account(world)}/keys")).json()["items"]}


async def test_a_new_key_works_beside_the_old_one_and_the_old_one_is_retired(world: World) -> None:
    (old,) = await _keys(world)
    key, new = await _add_key(world)
    before = await machine_token(world.api, world.controller_key, world.controller_id, world.now())
    after = await machine_token(world.api, key, world.controller_id, world.now())
    await world.boss.ok(f"{_account(world)}/keys/{old}/retire")
    check_problem(await before.get("/v1/whoami"), 401, "token_expired")
    check_problem(await world.controller.get("/v1/whoami"), 401, "token_expired")
    assert (await after.get("/v1/whoami")).status_code == 200
    check_problem(
        await redeem(world, assertion(world.controller_key, world.controller_id, now=world.now())),
        401,
        "assertion_refused",
    )
    keys = await _keys(world)
    assert (keys[old]["active"], keys[new]["active"]) == (False, True)
    assert keys[new]["last_used_at"]
    again = await world.boss.ok(f"{_account(world)}/keys/{old}/retire")
    assert again["retired_at"] == keys[old]["retired_at"], "retiring twice is retiring once"


async def test_kid_picks_the_key(world: World) -> None:
    (old,) = await _keys(world)
    key, new = await _add_key(world)
    assert (await redeem(world, _signed(key, world, world.controller_id, new))).status_code == 200
    for kid in (old, "key_" + "0" * 26, "", "é"):
        check_problem(await redeem(world, _signed(key, world, world.controller_id, kid)), 401, "assertion_refused")
    (others,) = rows(world.platform, "select id from principal_keys where principal_id = :p", p=world.second_id)
    check_problem(await redeem(world, _signed(key, world, world.controller_id, others["id"])), 401, "assertion_refused")


async def test_last_use_is_known_per_key(world: World) -> None:
    _, new = await _add_key(world)
    assert (await _keys(world))[new]["last_used_at"] is None
    listed = (await world.boss.get(f"/v1/projects/{world.red}/service-accounts")).json()["items"]
    mine = next(account for account in listed if account["id"] == world.controller_id)
    assert (mine["active_keys"], mine["roles"]) == (2, ["app_operator"])
    assert mine["last_used_at"]


async def test_a_key_is_not_added_twice_and_not_without_end(world: World) -> None:
    body = {"public_jwk": world.controller_key.as_dict(private=False)}
    check_problem(await world.boss.post(f"{_account(world)}/keys", body), 409, "public_key_taken")
    private = {"public_jwk": OKPKey.generate_key("Ed25519").as_dict(private=True)}
    check_problem(await world.boss.post(f"{_account(world)}/keys", private), 422, "public_key_not_accepted")
    for _ in range(9):
        await _add_key(world)
    body = {"public_jwk": OKPKey.generate_key("Ed25519").as_dict(private=False)}
    check_problem(await world.boss.post(f"{_account(world)}/keys", body), 409, "too_many_keys")


async def test_an_enabled_account_signs_in_again_but_its_old_tokens_stay_dead(world: World) -> None:
    await world.boss.ok(f"{_account(world)}/disable")
    assert (await world.boss.ok(f"{_account(world)}/enable"))["disabled"] is False
    check_problem(await world.controller.get("/v1/whoami"), 401, "token_expired")
    fresh = await machine_token(world.api, world.controller_key, world.controller_id, world.now())
    assert (await fresh.get("/v1/whoami")).status_code == 200


async def test_a_deleted_account_is_gone_with_all_it_had(world: World) -> None:
    gone = await world.boss.ok(f"{_account(world)}/delete")
    assert (gone["roles"], gone["active_keys"]) == ([], 0)
    assert (await world.controller.get("/v1/whoami")).status_code == 401
    check_problem(
        await redeem(world, assertion(world.controller_key, world.controller_id, now=world.now())),
        401,
        "assertion_refused",
    )
    for verb in ("enable", "disable", "delete"):
        check_problem(await world.boss.post(f"{_account(world)}/{verb}"), 404, "not_found")
    listed = (await world.boss.get(f"/v1/projects/{world.red}/service-accounts")).json()["items"]
    assert world.controller_id not in {account["id"] for account in listed}


async def test_an_account_of_another_project_has_no_keys_here(world: World) -> None:
    path = f"/v1/projects/{world.blue}/service-accounts/{world.controller_id}/keys"
    check_problem(await world.boss.get(path), 404, "not_found")
    (old,) = await _keys(world)
    second = f"/v1/projects/{world.red}/service-accounts/{world.second_id}/keys/{old}/retire"
    check_problem(await world.boss.post(second), 404, "not_found")
    assert (await _keys(world))[old]["active"]


# --- people


async def test_a_disabled_user_is_out_at_once_and_comes_back_without_old_sessions(world: World) -> None:
    path = f"/v1/tenants/{world.tenant}/users/{world.viewer_id}"
    assert (await world.boss.ok(f"{path}/disable"))["disabled"] is True
    assert (await world.viewer.get("/v1/whoami")).status_code == 401
    good = {"email": "viewer@acme.example", "password": PASSWORD}
    check_problem(await world.api.post("/v1/sign-in", good), 401, "sign_in_refused")
    await world.boss.ok(f"{path}/enable")
    assert (await world.viewer.get("/v1/whoami")).status_code == 401
    assert (await (await sign_in(world.api, "viewer@acme.example")).get("/v1/whoami")).status_code == 200


async def test_a_person_can_disable_neither_themselves_nor_strangers(world: World) -> None:
    users = f"/v1/tenants/{world.tenant}/users"
    check_problem(await world.boss.post(f"{users}/{world.boss_id}/disable"), 409, "not_yourself")
    admin = (await world.admin.get("/v1/whoami")).json()["principal"]["id"]
    for who in (admin, world.controller_id, "usr_" + "0" * 26):
        check_problem(await world.boss.post(f"{users}/{who}/disable"), 404, "not_found")


async def test_a_new_password_ends_the_other_sessions_only(world: World) -> None:
    second = await sign_in(world.api, "viewer@acme.example")
    body = {"current_password": PASSWORD, "new_password": NEW}
    answer = await world.viewer.post("/v1/whoami/password", body, key="change-my-password-1")
    assert answer.json() == {"ended_sessions": 1}
    replay = await world.viewer.post("/v1/whoami/password", body, key="change-my-password-1")
    assert replay.headers["idempotency-replayed"] == "true", "a lost answer can be asked for again"
    assert (await second.get("/v1/whoami")).status_code == 401
    assert (await world.viewer.get("/v1/whoami")).status_code == 200
    old = {"email": "viewer@acme.example", "password": PASSWORD}
    check_problem(await world.api.post("/v1/sign-in", old), 401, "sign_in_refused")
    assert (await world.api.post("/v1/sign-in", old | {"password": NEW})).status_code == 200
    events = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).json()["items"]
    assert "tenancy.user.password_changed" in [event["type"] for event in events]
    assert NEW not in str(dump(world.platform, without=set()))


async def test_the_present_password_is_needed_for_a_new_one(world: World) -> None:
    body = {"current_password": "not the password", "new_password": NEW}
    for _ in range(10):
        check_problem(await world.viewer.post("/v1/whoami/password", body), 422, "password_wrong")
    problem = check_problem(await world.viewer.post("/v1/whoami/password", body), 429, "too_many_guesses")
    assert problem["retry_after_s"] > 0
    check_problem(await world.controller.post("/v1/whoami/password", body), 422, "password_wrong")


async def test_people_see_and_end_their_own_sessions(world: World) -> None:
    second = await sign_in(world.api, "viewer@acme.example")
    listed = (await second.get("/v1/whoami/sessions")).json()["items"]
    assert sorted(session["current"] for session in listed) == [False, True]
    assert "token" not in str(listed)
    (first,) = [session["id"] for session in listed if not session["current"]]
    check_problem(await world.boss.post(f"/v1/whoami/sessions/{first}/revoke"), 404, "not_found")
    await second.ok(f"/v1/whoami/sessions/{first}/revoke")
    check_problem(await world.viewer.get("/v1/whoami"), 401, "token_expired")
    assert [s["current"] for s in (await second.get("/v1/whoami/sessions")).json()["items"]] == [True]


# --- guessing


async def _guess(world: World, email: str, password: str = "wrong password!") -> Any:
    return await world.api.as_(None).post("/v1/sign-in", {"email": email, "password": password})


@pytest.mark.parametrize("email", ["boss@acme.example", "unknown@acme.example"])
async def test_guessing_ends_after_ten_tries_whether_or_not_the_account_exists(
    world: World, clock: MovableClock, email: str
) -> None:
    for _ in range(10):
        check_problem(await _guess(world, email), 401, "sign_in_refused")
    answer = await _guess(world, email, PASSWORD)
    problem = check_problem(answer, 429, "too_many_guesses")
    assert 0 < int(answer.headers["retry-after"]) <= 900
    assert problem["retryable"] is True
    clock.forward(901)
    expected = 200 if email.startswith("boss") else 401
    assert (await _guess(world, email, PASSWORD)).status_code == expected


async def test_many_guesses_at_once_are_ten_as_well(world: World) -> None:
    answers = await asyncio.gather(*(_guess(world, "boss@acme.example") for _ in range(25)))
    assert sorted(answer.status_code for answer in answers) == [401] * 10 + [429] * 15


async def test_a_right_password_forgets_the_wrong_ones_and_others_are_not_held_up(world: World) -> None:
    for _ in range(9):
        await _guess(world, "boss@acme.example")
    assert (await _guess(world, "viewer@acme.example", PASSWORD)).status_code == 200
    assert (await _guess(world, "boss@acme.example", PASSWORD)).status_code == 200
    left = rows(world.platform, "select bucket from wrong_guesses where bucket not like 'everywhere:%'")
    assert left == [], "only the count over all addresses stays"
    check_problem(await _guess(world, "boss@acme.example"), 401, "sign_in_refused")


# --- invitations


async def _invite(world: World, **more: Any) -> Any:
    body = {"email": "ada@acme.example", "name": "Ada", "role": "project_member", "project_id": world.red} | more
    return await world.boss.ok(f"/v1/tenants/{world.tenant}/invitations", body)


async def _accept(world: World, token: str) -> Any:
    return await world.api.as_(None).post("/v1/invitations/accept", {"token": token, "password": PASSWORD})


async def test_an_invited_person_makes_an_account_with_the_promised_role(world: World) -> None:
    invited = await _invite(world)
    stored = str(dump(world.platform, without=set()))
    assert invited["token"].split(".")[1] not in stored, "the token is stored nowhere"
    accepted = await _accept(world, invited["token"])
    assert accepted.status_code == 201, accepted.text
    ada = await sign_in(world.api, "ada@acme.example")
    me = (await ada.get("/v1/whoami")).json()
    assert [(project["id"], project["roles"]) for project in me["projects"]] == [(world.red, ["project_member"])]
    check_problem(await _accept(world, invited["token"]), 401, "invitation_invalid")
    listed = (await world.boss.get(f"/v1/tenants/{world.tenant}/invitations")).json()["items"]
    assert [invitation["state"] for invitation in listed] == ["accepted"]
    (entry,) = rows(
        world.platform, "select * from audit where resource_id = :i and permission = 'public'", i=invited["id"]
    )
    assert (entry["actor_id"], entry["reason"]) == (me["principal"]["id"], f"invited by {world.boss_id}")


async def test_an_invitation_repeated_with_its_key_gives_the_same_token(world: World) -> None:
    body = {"email": "ada@acme.example", "name": "Ada"}
    path = f"/v1/tenants/{world.tenant}/invitations"
    first = await world.boss.ok(path, body, key="invite-ada-to-acme")
    assert await world.boss.ok(path, body, key="invite-ada-to-acme") == first
    assert one(world.platform, "select count(*) from invitations") == 1


async def test_a_revoked_or_old_invitation_is_worth_nothing(world: World, clock: MovableClock) -> None:
    invited = await _invite(world)
    revoked = await world.boss.ok(f"/v1/tenants/{world.tenant}/invitations/{invited['id']}/revoke")
    assert revoked["state"] == "revoked"
    check_problem(await _accept(world, invited["token"]), 401, "invitation_invalid")
    late = await _invite(world, email="eve@acme.example")
    clock.forward(7 * 24 * 3600 + 1)
    check_problem(await _accept(world, late["token"]), 401, "invitation_invalid")
    assert (
        rows(world.platform, "select 1 from principals where email in ('ada@acme.example', 'eve@acme.example')") == []
    )


@pytest.mark.parametrize("change", ["cut", "other", "made up", "enrolment"])
async def test_a_token_that_was_not_given_is_refused(world: World, change: str) -> None:
    invited, other = await _invite(world), await _invite(world, email="eve@acme.example")
    token = {
        "cut": invited["token"][:-1],
        "other": f"{invited['id']}.{other['token'].split('.')[1]}",
        "made up": "inv_" + "0" * 26 + ".abc",
        "enrolment": f"{invited['id']}.{world.platform.vault.mac(invited['id'])}",
    }[change]
    check_problem(await _accept(world, token), 401, "invitation_invalid")


async def test_what_the_inviter_lost_the_invitation_no_longer_gives(world: World) -> None:
    deputy, deputy_id = await add_user(world, "deputy@acme.example", "tenant_admin", by=world.admin)
    body = {"email": "ada@acme.example", "name": "Ada", "role": "project_admin"}
    invited = await deputy.ok(f"/v1/tenants/{world.tenant}/invitations", body)
    (binding,) = rows(world.platform, "select id from role_bindings where principal_id = :p", p=deputy_id)
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings/{binding['id']}/remove")
    check_problem(await _accept(world, invited["token"]), 401, "invitation_invalid")
    await world.admin.ok(
        f"/v1/tenants/{world.tenant}/role-bindings", {"principal_id": deputy_id, "role": "tenant_admin"}
    )
    await world.boss.ok(f"/v1/tenants/{world.tenant}/users/{deputy_id}/disable")
    check_problem(await _accept(world, invited["token"]), 401, "invitation_invalid")
    assert rows(world.platform, "select 1 from principals where email = 'ada@acme.example'") == []


@pytest.mark.parametrize(
    ("by", "changes", "code"),
    [
        ("boss", {"role": "platform_admin"}, "role_not_bindable"),
        ("boss", {"role": "made_up"}, "role_not_bindable"),
        ("boss", {"email": "viewer@acme.example"}, "email_taken"),
        ("boss", {"project_id": "prj_" + "0" * 26}, "not_found"),
        ("admin", {"role": "project_admin"}, "grant_exceeds_own"),
    ],
)
async def test_an_invitation_gives_no_more_than_its_writer_has(
    world: World, by: str, changes: dict[str, Any], code: str
) -> None:
    caller: Api = getattr(world, by)
    body = {"email": "ada@acme.example", "name": "Ada", "role": "project_member", "project_id": world.red} | changes
    refused = await caller.post(f"/v1/tenants/{world.tenant}/invitations", body)
    assert refused.json()["code"] == code
    assert rows(world.platform, "select 1 from invitations") == []
