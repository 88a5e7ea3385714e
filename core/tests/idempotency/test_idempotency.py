"""A request with a key happens once, however often it is sent, by whomever it was sent, whatever came back."""

import asyncio
import hashlib
import json
import secrets

import pytest
from gpuaas_core.iam.tables import role_bindings
from gpuaas_core.kit.wire import canonical
from sqlalchemy import delete, text

from core.tests.support.fixtures import PASSWORD, Store, World, looking
from core.tests.support.served import Served, calling
from core.tests.support.store_rows import dump, one, rows

KEY = "the-same-key-every-time"


async def _sixty_four(world: World, name: str) -> list:
    body = world.deploy_body(world.allocations[0], name)
    again = (world.boss.post(f"/v1/projects/{world.red}/instances", body, key=KEY) for _ in range(64))
    return await asyncio.gather(*again)


def _check_one_effect(answers: list, count) -> None:
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["operation"]["id"] for answer in answers}) == 1
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert count("select count(*) from instances") == 1
    assert count("select count(*) from operations") == 1
    assert count("select count(*) from members") == 2
    assert count("select count(*) from events where type = 'apps.instance.requested'") == 1
    assert count("select count(*) from audit where permission = 'apps.instance.create'") == 1


async def test_sixty_four_identical_requests_at_once_have_one_effect(world: World) -> None:
    answers = await _sixty_four(world, "same")
    _check_one_effect(answers, lambda statement: one(world.platform, statement))


async def test_sixty_four_identical_requests_at_once_have_one_effect_on_a_served_core(
    served: Served, store: Store
) -> None:
    async with calling(served, store.world) as world:
        answers = await _sixty_four(world, "same")
    with looking(served.folder) as tx:
        _check_one_effect(answers, lambda statement: tx.execute(text(statement)).scalar())


async def test_a_replay_says_so_and_is_the_first_answer(world: World) -> None:
    path, body = f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0])
    first = await world.boss.post(path, body, key=KEY)
    before = dump(world.platform)
    again = await world.boss.post(path, body, key=KEY)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert dump(world.platform) == before


async def test_the_same_content_written_otherwise_is_the_same_request(world: World) -> None:
    path, body = (
        f"/v1/projects/{world.red}/instances",
        world.deploy_body(world.allocations[0], inputs={"greeting": "hé"}),
    )
    first = await world.boss.post(path, body, key=KEY)
    backwards = dict(reversed(body.items()))
    text = json.dumps(backwards, indent=3, ensure_ascii=True)
    headers = {"Content-Type": "application/json"}
    again = await world.boss.call("POST", path, key=KEY, content=text, headers=headers)
    assert again.headers.get("idempotency-replayed") == "true", again.text
    assert again.json() == first.json()


async def test_a_key_with_another_content_is_refused_and_nothing_happens(world: World) -> None:
    await world.boss.post(f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0]), key=KEY)
    before = dump(world.platform)
    other = world.deploy_body(world.allocations[1], "second")
    refused = await world.boss.post(f"/v1/projects/{world.red}/instances", other, key=KEY)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert dump(world.platform) == before


async def test_a_key_used_on_another_thing_of_the_same_kind_is_refused(world: World) -> None:
    first, second = await world.deploy(), await world.deploy(world.allocations[1], "second")
    await world.boss.ok(world.operation(first["operation"]["id"], "cancel"), key=KEY)
    refused = await world.boss.post(world.operation(second["operation"]["id"], "cancel"), key=KEY)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert (await world.boss.get(world.operation(second["operation"]["id"]))).json()["status"] == "queued"


@pytest.mark.parametrize("key", ["", "short", "has a space in the middle", "x" * 256, 'quote"quote"quote'])
async def test_a_missing_or_malformed_key_is_refused(world: World, key: str) -> None:
    before = dump(world.platform)
    headers = {"Idempotency-Key": key}
    body = world.deploy_body(world.allocations[0])
    refused = await world.boss.post(f"/v1/projects/{world.red}/instances", body, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "idempotency_key_missing")
    assert dump(world.platform) == before


async def test_the_same_key_of_another_caller_is_another_request(world: World) -> None:
    body = {"name": "twin", "public_jwk": world.controller_key.as_dict(private=False), "roles": ["project_viewer"]}
    path = f"/v1/projects/{world.red}/service-accounts"
    mine = await world.boss.ok(path, body, key=KEY)
    stranger = await world.viewer.post(path, body, key=KEY)
    assert stranger.status_code == 403, "a key is no way to read another caller's answer"
    binding = {"principal_id": world.viewer_id, "role": "project_admin", "project_id": world.red}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings", binding)
    theirs = await world.viewer.post(path, body, key=KEY)
    assert theirs.status_code == 201
    assert "idempotency-replayed" not in theirs.headers
    assert theirs.json()["id"] != mine["id"]


async def test_a_refusal_is_not_remembered(world: World) -> None:
    path = f"/v1/projects/{world.red}/instances"
    body = world.deploy_body(world.allocations[0], inputs={"greeting": 7})
    refused = await world.boss.post(path, body, key=KEY)
    assert refused.json()["code"] == "inputs_invalid"
    mended = await world.boss.post(path, body | {"inputs": {"greeting": "hello"}}, key=KEY)
    assert mended.status_code == 202
    assert "idempotency-replayed" not in mended.headers


async def test_an_answer_of_no_work_is_not_remembered(world: World) -> None:
    """A controller that asks again under the same key (its first answer was lost) must get the work that came since."""
    path, body = f"/v1/projects/{world.red}/operations/claim", {"app_slug": "echo", "holder": "controller-a"}
    nothing = await world.controller.post(path, body, key=KEY)
    assert nothing.status_code == 204
    accepted = await world.deploy()
    claimed = await world.controller.ok(path, body, key=KEY)
    assert claimed["operation"]["id"] == accepted["operation"]["id"]


async def test_a_caller_who_lost_the_permission_gets_no_stored_answer(world: World) -> None:
    path, body = f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0])
    binding = {"principal_id": world.viewer_id, "role": "project_admin", "project_id": world.red}
    binding_id = (await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings", binding))["id"]
    assert (await world.viewer.post(path, body, key=KEY)).status_code == 202
    lose = delete(role_bindings).where(role_bindings.c.id == binding_id)
    world.platform.db.write_now(lambda tx: tx.execute(lose))
    demoted = await world.viewer.post(path, body, key=KEY)
    assert (demoted.status_code, demoted.json()["code"]) == (403, "permission_denied")
    lose = delete(role_bindings).where(role_bindings.c.principal_id == world.viewer_id)
    world.platform.db.write_now(lambda tx: tx.execute(lose))
    outside = await world.viewer.post(path, body, key=KEY)
    assert (outside.status_code, outside.json()["code"]) == (404, "not_found")


async def test_what_is_remembered_of_a_request_does_not_help_to_guess_a_password(world: World) -> None:
    """Passwords are kept under a slow hash; a plain fast hash of the same body beside it would undo that."""
    path = f"/v1/tenants/{world.tenant}/users"
    body = {"email": "new@acme.example", "name": "New", "password": PASSWORD}
    await world.boss.ok(path, body, key=secrets.token_hex(16))
    guess = hashlib.sha256(canonical([path, "", body]).encode()).hexdigest()
    assert rows(world.platform, "select * from seen_requests where fingerprint = :guess", guess=guess) == []


async def test_old_keys_are_forgotten_after_the_promised_week_and_not_before(world: World) -> None:
    from gpuaas_core.background.housekeeping import tidy

    path, body = f"/v1/tenants/{world.tenant}/projects", {"slug": "green", "name": "Green"}
    await world.boss.ok(path, body, key=KEY)
    now, day = world.platform.clock(), 24 * 3600 * 1000
    for days, kept in ((6, 1), (8, 0)):
        tidy(world.platform, now + days * day)
        assert one(world.platform, "select count(*) from seen_requests where key = :key", key=KEY) == kept
