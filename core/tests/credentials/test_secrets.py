"""Runtime secrets: sealed in the store, sealed again to the controller's own key, and in the clear nowhere at all."""

import asyncio
import base64
import hashlib
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from gpuaas_core.background.housekeeping import tidy
from joserfc import jwe, jws
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import text

from core.tests.instances.test_instances import check_problem
from core.tests.support.fixtures import MovableClock, World
from core.tests.support.store_rows import dump, rows, store_files

CANARY = "canary-7f3a-do-not-tell"


def raw(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")


def agreement_key(key: OKPKey) -> OKPKey:
    """What the holder of the Ed25519 private key computes for itself."""
    scalar = hashlib.sha512(raw(key.as_dict(private=True)["d"])).digest()[:32]
    private = X25519PrivateKey.from_private_bytes(scalar)
    b64 = lambda value: base64.urlsafe_b64encode(value).decode().rstrip("=")  # noqa: E731
    jwk = {"kty": "OKP", "crv": "X25519", "x": b64(private.public_key().public_bytes_raw())}
    return OKPKey.import_key(jwk | {"d": b64(private.private_bytes_raw())})


async def opened(world: World, answer: Any, key: Any) -> dict[str, Any]:
    inner = jwe.decrypt_compact(answer["sealed"], key, algorithms=["ECDH-ES", "A256GCM"]).plaintext
    about = (await world.api.get("/v1")).json()
    platform = OKPKey.import_key(about["keys"]["secrets"])
    assert inner is not None
    return json.loads(jws.deserialize_compact(inner, platform, algorithms=["EdDSA"]).payload)


async def working(world: World) -> Any:
    await world.deploy()
    return await world.claim()


async def deliver(world: World, claim: Any, name: str = "db_password", **more: Any) -> Any:
    body = {"claim_epoch": claim["claim_epoch"], "name": name} | more
    return await world.controller.post(world.operation(claim["operation"]["id"], "secrets/deliver"), body)


async def test_a_provided_secret_reaches_its_controller_and_appears_nowhere_in_the_clear(
    world: World, capsys: pytest.CaptureFixture[str], store_folder: Any
) -> None:
    claim = await working(world)
    path = world.of(claim["instance"], "secrets")
    made = await world.boss.post(path, {"name": "db_password", "value": CANARY})
    answer = await deliver(world, claim)
    claims = await opened(world, answer.json(), agreement_key(world.controller_key))
    assert claims["value"] == CANARY
    assert (claims["aud"], claims["operation_id"]) == (world.controller_id, claim["operation"]["id"])
    assert (claims["claim_epoch"], claims["version"]) == (claim["claim_epoch"], 1)
    listed = await world.boss.get(path)
    await world.boss.post(path, {"name": "Wrong Name", "value": CANARY})
    told = made.text + answer.text + listed.text + capsys.readouterr().out + str(dump(world.platform, without=set()))
    events = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).text
    for form in (CANARY, base64.b64encode(CANARY.encode()).decode()[:20], CANARY.encode().hex()):
        assert form not in told + events
        for file in store_files(store_folder):
            assert form.encode() not in file.read_bytes(), file


async def test_a_generated_secret_is_long_and_of_its_alphabet_and_its_versions_count_up(world: World) -> None:
    claim = await working(world)
    path = world.operation(claim["operation"]["id"], "secrets")
    body = {"claim_epoch": 1, "name": "munge", "length": 40, "alphabet": "hex"}
    first = await world.controller.ok(path, body)
    second = await world.controller.ok(path, body)
    assert [(one["version"], one["origin"]) for one in (first, second)] == [(1, "generated"), (2, "generated")]
    key = agreement_key(world.controller_key)
    newest = await opened(world, (await deliver(world, claim, "munge")).json(), key)
    oldest = await opened(world, (await deliver(world, claim, "munge", version=1)).json(), key)
    assert newest["value"] != oldest["value"]
    assert len(newest["value"]) == 40
    assert set(newest["value"]) <= set("0123456789abcdef")
    listed = (await world.boss.get(world.of(claim["instance"], "secrets"))).json()["items"]
    assert [(one["name"], one["version"]) for one in listed] == [("munge", 1), ("munge", 2)]
    assert set(listed[0]) == {"id", "name", "version", "origin", "created_by", "created_at"}


async def test_only_who_holds_the_claim_gets_it(world: World) -> None:
    claim = await working(world)
    await world.boss.ok(world.of(claim["instance"], "secrets"), {"name": "db_password", "value": CANARY})
    path, body = world.operation(claim["operation"]["id"], "secrets/deliver"), {"claim_epoch": 1, "name": "db_password"}
    check_problem(await world.second.post(path, body), 409, "stale_claim")
    check_problem(await world.boss.post(path, body), 409, "stale_claim")
    assert (await world.viewer.post(path, body)).status_code == 403
    assert (await world.blue_controller.post(path, body)).status_code == 404
    assert (await world.viewer.get(world.of(claim["instance"], "secrets"))).status_code == 403
    check_problem(await deliver(world, claim, "unknown_name"), 404, "not_found")
    await world.complete(claim)
    check_problem(await deliver(world, claim), 409, "stale_claim")


@pytest.mark.parametrize(
    "moved",
    [
        "update runtime_secrets set tenant_id = 'ten_other', instance_id = :other where name = 'db_password'",
        "update runtime_secrets set name = 'other_name' where name = 'db_password'",
        "update runtime_secrets set version = 7 where name = 'db_password'",
        "update runtime_secrets set sealed = (select sealed from runtime_secrets where name = 'spare') where name = 'db_password'",
    ],
)
async def test_a_sealed_value_moved_elsewhere_does_not_open(world: World, moved: str) -> None:
    first = await world.running(world.allocations[1], "second")
    claim = await working(world)
    for name in ("db_password", "spare"):
        await world.boss.ok(world.of(claim["instance"], "secrets"), {"name": name, "value": CANARY})
    world.platform.db.write_now(lambda tx: tx.execute(text(moved), {"other": first["id"]} if ":other" in moved else {}))
    if ":other" in moved:
        await world.boss.ok(world.of(first, "restart"))
        claim = await world.claim(holding=[claim["operation"]["id"]])
    name = "other_name" if "other_name" in moved else "db_password"
    check_problem(await deliver(world, claim, name), 503, "custody_failed")


async def test_secrets_go_with_their_instance_and_one_can_be_deleted_before(world: World) -> None:
    instance = await world.running()
    path = world.of(instance, "secrets")
    for name in ("one", "two"):
        await world.boss.ok(path, {"name": name})
    assert await world.boss.ok(f"{path}/delete", {"name": "one"}) == {"name": "one", "versions": 1}
    check_problem(await world.boss.post(f"{path}/delete", {"name": "one"}), 404, "not_found")
    await world.decommission(instance["id"])
    await world.torn_down(await world.claim())
    assert rows(world.platform, "select id from runtime_secrets") == []
    check_problem(await world.boss.post(path, {"name": "late"}), 409, "wrong_state")


async def test_a_key_on_the_other_curve_is_sealed_to_as_well_and_the_one_in_use_is_taken(world: World) -> None:
    key = ECKey.generate_key("P-256")
    account = f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/keys"
    await world.boss.ok(account, {"public_jwk": key.as_dict(private=False)})
    claim = await working(world)
    await world.boss.ok(world.of(claim["instance"], "secrets"), {"name": "db_password", "value": CANARY})
    assert (await opened(world, (await deliver(world, claim)).json(), agreement_key(world.controller_key)))["value"]
    used = "update principal_keys set last_used_at = created_at + 1000000 where public_jwk like '%P-256%'"
    if not world.platform.db.is_sqlite:
        used = used.replace("public_jwk like", "public_jwk::text like")
    world.platform.db.write_now(lambda tx: tx.execute(text(used)))
    claim = await world.claim(by=world.controller)  # the same holder, back after a crash
    assert (await opened(world, (await deliver(world, claim)).json(), key))["value"] == CANARY


async def told(world: World, what: str) -> list[Any]:
    events = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).json()["items"]
    return [one for one in events if one["type"] == f"apps.secret.{what}"]


async def test_of_twenty_at_once_exactly_one_is_given_the_secret(world: World) -> None:
    claim = await working(world)
    await world.boss.ok(world.of(claim["instance"], "secrets"), {"name": "db_password", "value": CANARY})
    answers = await asyncio.gather(*(deliver(world, claim) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 19
    for answer in answers:
        if answer.status_code == 410:
            assert "Idempotency-Key" in check_problem(answer, 410, "already_delivered")["way_out"]
    assert (len(await told(world, "delivered")), len(await told(world, "redelivery_refused"))) == (1, 19)
    denied = "select 1 from audit where permission = 'apps.secret.use' and outcome = 'denied'"
    assert len(rows(world.platform, denied)) == 19


async def test_a_lost_answer_is_told_again_and_after_a_crash_the_new_claim_is_given_its_own(
    world: World, clock: MovableClock
) -> None:
    claim = await working(world)
    await world.boss.ok(world.of(claim["instance"], "secrets"), {"name": "db_password", "value": CANARY})
    key = "the-key-of-the-lost-answer"
    path = world.operation(claim["operation"]["id"], "secrets/deliver")
    body = {"claim_epoch": 1, "name": "db_password"}
    first, second = [await world.controller.post(path, body, key=key) for _ in range(2)]
    assert (second.headers["idempotency-replayed"], second.json()) == ("true", first.json())
    check_problem(await deliver(world, claim), 410, "already_delivered")
    newer = await world.claim()
    assert newer["claim_epoch"] == 2
    check_problem(await deliver(world, claim), 409, "stale_claim")
    given = await opened(world, (await deliver(world, newer)).json(), agreement_key(world.controller_key))
    assert (given["value"], given["claim_epoch"]) == (CANARY, 2)
    kept = "select key from seen_requests where body like '%sealed%'"
    assert len(rows(world.platform, kept)) == 2
    clock.forward(301)
    tidy(world.platform, clock())
    assert rows(world.platform, kept) == [], "a sealed answer is kept no longer than it can be opened"


async def test_a_new_version_is_a_delivery_of_its_own_and_a_deleted_secret_is_never_delivered_again(
    world: World,
) -> None:
    claim = await working(world)
    path = world.operation(claim["operation"]["id"], "secrets")
    for version in (1, 2):
        await world.controller.ok(path, {"claim_epoch": 1, "name": "munge"})
        assert (await deliver(world, claim, "munge")).json()["version"] == version
        check_problem(await deliver(world, claim, "munge"), 410, "already_delivered")
    await world.boss.ok(world.of(claim["instance"], "secrets/delete"), {"name": "munge"})
    check_problem(await deliver(world, claim, "munge"), 404, "not_found")
    assert rows(world.platform, "select key from seen_requests where body like '%sealed%'") == []
