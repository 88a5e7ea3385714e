"""Access credentials: sealed where they lie, given once to the controller of a claim, and in the clear nowhere at all."""

import asyncio
import base64
import subprocess
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from gpuaas_core.background.housekeeping import tidy
from gpuaas_core.credentials.states import CREDENTIAL, REDEEM
from gpuaas_core.custody.rotation import forget_data_keys, reseal, rotate_data_key
from sqlalchemy import text

from core.tests.credentials.test_secrets import agreement_key, opened
from core.tests.instances.test_instances import check_problem
from core.tests.support.fixtures import MovableClock, World
from core.tests.support.store_rows import dump, rows, store_files

WEAK = rsa.generate_private_key(65537, 2048)


def written(key: Any) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()


def locked(path: Path) -> str:
    """Made as people make them: our own library would need one more to write it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a passphrase", "-f", path], check=True, timeout=20)
    return path.read_text()


def public(key: Any) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def of(world: World, *more: str) -> str:
    return "/".join((f"/v1/projects/{world.red}/credentials", *more))


async def made(world: World, name: str = "storage", **more: Any) -> Any:
    return await world.boss.ok(of(world, *(["import"] if more else [])), {"name": name} | more)


async def working(world: World, *credentials: Any) -> Any:
    """A claimed deploy whose instance may use these."""
    await world.deploy()
    claim = await world.claim()
    for one in credentials:
        await world.boss.ok(of(world, one["id"], "bind"), {"instance_id": claim["instance"]["id"]})
    return claim


async def redeem(world: World, claim: Any, name: str = "storage", key: str | None = None, **more: Any) -> Any:
    body = {"claim_epoch": claim["claim_epoch"], "name": name} | more
    path = world.operation(claim["operation"]["id"], "credentials/redeem")
    return await world.controller.post(path, body, key=key)


async def told(world: World, answer: Any) -> dict[str, Any]:
    return await opened(world, answer.json(), agreement_key(world.controller_key))


async def again(world: World, claim: Any) -> Any:
    """The same operation under the next epoch, as after a crash of its controller."""
    return await world.claim(holder="controller-a")


async def events(world: World, what: str) -> list[Any]:
    found = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).json()["items"]
    return [one for one in found if one["type"] == f"custody.credential.{what}"]


# --- what is kept


async def test_a_made_key_shows_its_public_half_and_delivers_the_private_half_that_belongs_to_it(world: World) -> None:
    credential = await made(world)
    assert (credential["state"], credential["version"], credential["origin"]) == ("active", 1, "generated")
    claim = await working(world, credential)
    answer = await redeem(world, claim)
    claims = await told(world, answer)
    assert public(load_ssh_private_key(claims["value"].encode(), None)) == credential["public_key"]
    assert (claims["aud"], claims["credential_id"]) == (world.controller_id, credential["id"])
    assert (claims["operation_id"], claims["claim_epoch"]) == (claim["operation"]["id"], claim["claim_epoch"])
    assert (claims["instance_id"], claims["version"]) == (claim["instance"]["id"], 1)
    assert "PRIVATE KEY" not in answer.text


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (ed25519.Ed25519PrivateKey.generate(), "ed25519"),
        (ec.generate_private_key(ec.SECP384R1()), "ecdsa"),
        (rsa.generate_private_key(65537, 3072), "rsa"),
    ],
    ids=["ed25519", "ecdsa", "rsa"],
)
async def test_an_imported_key_is_kept_without_its_comment(world: World, key: Any, algorithm: str) -> None:
    credential = await made(world, private_key="\n" + written(key).replace("\n", "\r\n"))
    assert (credential["algorithm"], credential["origin"]) == (algorithm, "imported")
    assert credential["public_key"] == public(key)
    assert credential["fingerprint"].startswith("SHA256:")
    claims = await told(world, await redeem(world, await working(world, credential)))
    assert public(load_ssh_private_key(claims["value"].encode(), None)) == public(key)


@pytest.mark.parametrize(
    ("private_key", "sentence"),
    [
        (written(WEAK), "RSA key has 2048 bits"),
        (
            WEAK.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "not in OpenSSH format",
        ),
        (written(WEAK)[:200], "unreadable or of an unsupported type"),
        (public(WEAK), "not in OpenSSH format"),
    ],
    ids=["weak", "pkcs8", "cut", "public"],
)
async def test_a_key_that_cannot_be_kept_is_refused_and_not_repeated(
    world: World, private_key: str, sentence: str
) -> None:
    before = dump(world.platform)
    refused = await world.boss.post(of(world, "import"), {"name": "storage", "private_key": private_key})
    assert sentence in check_problem(refused, 422, "credential_key_not_accepted")["detail"]
    assert private_key[60:90] not in refused.text
    assert dump(world.platform) == before


async def test_a_key_with_a_passphrase_is_refused_with_the_way_to_take_it_off(world: World, tmp_path: Path) -> None:
    body = {"name": "storage", "private_key": locked(tmp_path / "key")}
    refused = await world.boss.post(of(world, "import"), body)
    problem = check_problem(refused, 422, "credential_key_not_accepted")
    assert "passphrase" in problem["detail"]
    assert "ssh-keygen -p" in problem["way_out"]


async def test_a_name_is_taken_until_its_credential_is_revoked(world: World) -> None:
    first = await made(world)
    check_problem(await world.boss.post(of(world), {"name": "storage"}), 409, "credential_name_taken")
    await world.boss.ok(of(world, first["id"], "revoke"), {"reason": "no longer needed"})
    second = await made(world)
    live = (await world.boss.get(of(world))).json()["items"]
    assert [one["id"] for one in live] == [second["id"]]
    every = (await world.boss.get(of(world) + "?revoked=true")).json()["items"]
    assert [(one["id"], one["state"]) for one in every] == [(first["id"], "revoked"), (second["id"], "active")]


async def test_another_project_does_not_see_it(world: World) -> None:
    credential = await made(world)
    there = f"/v1/projects/{world.blue}/credentials"
    assert (await world.boss.get(there)).json()["items"] == []
    check_problem(await world.boss.get(f"{there}/{credential['id']}"), 404, "not_found")
    for verb, body in {"rotate": {}, "revoke": {"reason": "mine now"}, "complete-rotation": {}}.items():
        check_problem(await world.boss.post(f"{there}/{credential['id']}/{verb}", body), 404, "not_found")
    assert (await world.viewer.get(of(world))).status_code == 403
    assert (await world.controller.get(of(world))).status_code == 403


def forms(secret: bytes) -> list[bytes]:
    """Raw and as others might write it; base64 at each of the three places where it can begin."""
    shifted = [base64.b64encode(b"\0" * shift + secret)[8:-8] for shift in range(3)]
    return [secret, secret.hex().encode(), urllib.parse.quote(secret).encode(), *shifted]


async def test_an_imported_key_appears_nowhere_in_the_clear(
    world: World, capfd: pytest.CaptureFixture[str], store_folder: Any
) -> None:
    first, second = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    credential = await made(world, private_key=written(first))
    claim = await working(world, credential)
    answers = [await redeem(world, claim, key="a-key-to-keep-for-long")]
    answers.append(await redeem(world, claim, key="a-key-to-keep-for-long"))
    answers.append(await redeem(world, claim))
    answers.append(await world.boss.post(of(world, credential["id"], "rotate"), {"private_key": written(second)}))
    again = {"name": "storage", "private_key": written(second)}
    answers.append(await world.boss.post(of(world, "import"), again))
    answers.append(await world.boss.post(of(world, "import"), again | {"name": "No Slug", "extra": written(first)}))
    answers.append(await world.boss.post(of(world, credential["id"], "rotate"), {"private_key": [written(first)]}))
    answers += [await world.boss.get(of(world)), await world.boss.get(of(world, credential["id"]))]
    answers.append(await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000"))
    answers.append(await world.boss.get(f"/v1/tenants/{world.tenant}/audit?limit=200"))
    assert [one.status_code for one in answers] == [200, 200, 410, 200, 409, 422, 422, 200, 200, 200, 200]
    printed = "".join(capfd.readouterr())
    everything = "".join(one.text for one in answers) + printed + str(dump(world.platform, without=set()))
    places = [everything.encode(), *(file.read_bytes() for file in store_files(store_folder))]
    for key in (first, second):
        seed, lines = key.private_bytes_raw(), written(key).splitlines()
        for form in [*forms(seed), *(form for line in lines[1:-1] for form in forms(line[4:].encode()))]:
            if len(form) > 12:
                assert not any(form in place for place in places), form
    assert public(first).split()[1].encode() in places[0], "the sweep does not look where the rows are"


# --- once


async def test_of_twenty_at_once_exactly_one_is_given_it(world: World) -> None:
    claim = await working(world, await made(world))
    answers = await asyncio.gather(*(redeem(world, claim) for _ in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200] + [410] * 19
    for answer in answers:
        if answer.status_code == 410:
            assert "Idempotency-Key" in check_problem(answer, 410, "already_delivered")["way_out"]
    assert len(rows(world.platform, "select id from credential_deliveries")) == 1
    assert len(await events(world, "delivered")) == 1
    refusals = await events(world, "redelivery_refused")
    assert len(refusals) == 19
    assert {one["data"]["operation_id"] for one in refusals} == {claim["operation"]["id"]}
    denied = "select 1 from audit where permission = 'custody.credential.use' and outcome = 'denied'"
    assert len(rows(world.platform, denied)) == 19


async def test_the_same_request_twenty_times_at_once_is_one_delivery(world: World) -> None:
    claim = await working(world, await made(world))
    answers = await asyncio.gather(*(redeem(world, claim, key="one-key-for-all-of-them") for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["sealed"] for answer in answers}) == 1
    assert len(await events(world, "delivered")) == 1
    assert await events(world, "redelivery_refused") == []


async def test_nothing_is_delivered_after_a_revocation_however_close_they_come(world: World) -> None:
    names = [f"key-{number}" for number in range(6)]
    credentials = [await made(world, name) for name in names]
    claim = await working(world, *credentials)
    revoking = (world.boss.post(of(world, one["id"], "revoke"), {"reason": "a race"}) for one in credentials)
    answers = await asyncio.gather(*(redeem(world, claim, name) for name in names), *revoking)
    assert {answer.status_code for answer in answers[6:]} == {200}
    revoked = {one["subject"]: one["sequence"] for one in await events(world, "revoked")}
    delivered = {one["subject"]: one["sequence"] for one in await events(world, "delivered")}
    for credential, answer in zip(credentials, answers, strict=False):
        assert (answer.status_code == 200) == (credential["id"] in delivered), answer.text
        assert delivered.get(credential["id"], 0) < revoked[credential["id"]]
        assert answer.status_code == 200 or answer.json()["code"] == "credential_revoked"


async def test_a_lost_answer_is_repeated_only_for_the_same_key_of_the_same_caller(world: World) -> None:
    claim = await working(world, await made(world))
    key = "the-key-of-the-lost-answer"
    first, second = await redeem(world, claim, key=key), await redeem(world, claim, key=key)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.json() == first.json()
    assert (await told(world, second))["value"].startswith("-----BEGIN OPENSSH")
    body = {"claim_epoch": claim["claim_epoch"], "name": "storage"}
    path = world.operation(claim["operation"]["id"], "credentials/redeem")
    check_problem(await world.second.post(path, body, key=key), 409, "stale_claim")
    check_problem(await redeem(world, claim), 410, "already_delivered")


async def test_a_sealed_answer_is_kept_no_longer_than_it_can_be_opened(world: World, clock: MovableClock) -> None:
    claim = await working(world, await made(world))
    key = "the-key-of-the-lost-answer"
    await redeem(world, claim, key=key)
    kept = "select key from seen_requests where body like '%sealed%'"
    tidy(world.platform, clock())
    assert len(rows(world.platform, kept)) == 1
    clock.forward(301)
    tidy(world.platform, clock())
    assert rows(world.platform, kept) == []
    claim = await again(world, claim)
    check_problem(await redeem(world, claim | {"claim_epoch": 1}, key=key), 409, "stale_claim")
    assert (await redeem(world, claim)).status_code == 200


async def test_a_new_epoch_gets_a_delivery_of_its_own_and_an_old_one_none(world: World) -> None:
    claim = await working(world, await made(world))
    assert (await redeem(world, claim)).status_code == 200
    newer = await again(world, claim)
    assert newer["claim_epoch"] == claim["claim_epoch"] + 1
    check_problem(await redeem(world, claim), 409, "stale_claim")
    assert (await told(world, await redeem(world, newer)))["claim_epoch"] == newer["claim_epoch"]
    await world.complete(newer)
    check_problem(await redeem(world, newer), 409, "stale_claim")


async def test_only_the_holder_of_the_claim_gets_it_and_only_what_its_instance_is_bound_to(world: World) -> None:
    mine, other = await made(world), await made(world, "other")
    claim = await working(world, mine)
    path, body = world.operation(claim["operation"]["id"], "credentials/redeem"), {"claim_epoch": 1, "name": "storage"}
    check_problem(await world.second.post(path, body), 409, "stale_claim")
    check_problem(await world.boss.post(path, body), 409, "stale_claim")
    assert (await world.viewer.post(path, body)).status_code == 403
    assert (await world.blue_controller.post(path, body)).status_code == 404
    unbound = check_problem(await redeem(world, claim, "other"), 404, "not_found")
    unknown = check_problem(await redeem(world, claim, "made-up"), 404, "not_found")
    assert unbound["detail"].replace("other", "made-up") == unknown["detail"]
    check_problem(await redeem(world, claim, version=2), 404, "not_found")
    instance = {"instance_id": claim["instance"]["id"]}
    await world.boss.ok(of(world, other["id"], "bind"), instance)
    await world.boss.ok(of(world, other["id"], "bind"), instance)
    assert len(await events(world, "bound")) == 2, "bound again is bound once"
    assert (await redeem(world, claim, "other")).status_code == 200
    await world.boss.ok(of(world, mine["id"], "unbind"), instance)
    check_problem(await redeem(world, claim), 404, "not_found")
    check_problem(await world.boss.post(of(world, mine["id"], "unbind"), instance), 404, "not_found")
    assert len(await events(world, "delivered")) == 1


# --- rotation and the end


async def test_while_it_rotates_both_versions_are_good_and_it_says_who_has_the_old_one(world: World) -> None:
    credential = await made(world)
    claim = await working(world, credential)
    await redeem(world, claim)
    rotated = await world.boss.ok(of(world, credential["id"], "rotate"), {"overlap_s": 3600})
    assert (rotated["state"], rotated["version"]) == ("rotating", 2)
    assert rotated["public_key"] != credential["public_key"]
    (use,) = rotated["used_by"]
    assert (use["instance_name"], use["bound"], use["behind"]) == ("first", True, True)
    assert [one["version"] for one in use["versions"]] == [1]
    claim = await again(world, claim)
    old, new = await redeem(world, claim, version=1), await redeem(world, claim)
    assert [(await told(world, one))["version"] for one in (old, new)] == [1, 2]
    ended = await world.boss.ok(of(world, credential["id"], "complete-rotation"))
    assert (ended["state"], ended["overlap_ends_at"]) == ("active", None)
    (use,) = ended["used_by"]
    assert (use["behind"], sorted(one["version"] for one in use["versions"])) == (False, [1, 2])
    assert use["last_used_at"] == max(one["last_used_at"] for one in use["versions"])
    assert [one["retired_at"] is None for one in ended["versions"]] == [False, True]
    claim = await again(world, claim)
    check_problem(await redeem(world, claim, version=1), 410, "credential_version_retired")
    assert (await redeem(world, claim)).status_code == 200
    gone = "select version from credential_versions where sealed_private_key is null"
    assert [row["version"] for row in rows(world.platform, gone)] == [1]


@pytest.mark.parametrize("tidied", [True, False])
async def test_an_overlap_ends_by_itself(world: World, clock: MovableClock, tidied: bool) -> None:
    credential = await made(world)
    claim = await working(world, credential)
    await world.boss.ok(of(world, credential["id"], "rotate"), {"overlap_s": 60})
    clock.forward(59)
    tidy(world.platform, clock())
    assert (await world.boss.get(of(world, credential["id"]))).json()["state"] == "rotating"
    clock.forward(2)
    if tidied:
        tidy(world.platform, clock())
        assert (await world.boss.get(of(world, credential["id"]))).json()["state"] == "active"
        (ended,) = await events(world, "rotation_completed")
        assert (ended["data"]["project_id"], ended["data"]["credential_version"]) == (world.red, 2)
    claim = await again(world, claim)
    check_problem(await redeem(world, claim, version=1), 410, "credential_version_retired")
    assert (await world.boss.ok(of(world, credential["id"], "rotate")))["version"] == 3


async def test_rotating_to_a_key_it_had_is_no_rotation(world: World) -> None:
    key = written(ed25519.Ed25519PrivateKey.generate())
    credential = await made(world, private_key=key)
    refused = await world.boss.post(of(world, credential["id"], "rotate"), {"private_key": key})
    check_problem(refused, 409, "credential_key_not_new")
    assert (await world.boss.get(of(world, credential["id"]))).json()["state"] == "active"


async def test_a_revoked_credential_is_never_given_not_even_as_a_lost_answer(world: World) -> None:
    credential = await made(world)
    claim = await working(world, credential)
    key = "the-key-of-the-lost-answer"
    await redeem(world, claim, key=key)
    gone = await world.boss.ok(of(world, credential["id"], "revoke"), {"reason": "a laptop was stolen"})
    assert (gone["state"], gone["available_actions"], gone["revoke_reason"]) == ("revoked", [], "a laptop was stolen")
    for repeated in (key, None):
        problem = check_problem(await redeem(world, claim, key=repeated), 410, "credential_revoked")
        assert "a laptop was stolen" in problem["detail"]
    claim = await again(world, claim)
    check_problem(await redeem(world, claim), 410, "credential_revoked")
    assert rows(world.platform, "select 1 from credential_versions where sealed_private_key is not null") == []
    assert rows(world.platform, "select 1 from seen_requests where body like '%sealed%'") == []
    replacement = await made(world)
    await world.boss.ok(of(world, replacement["id"], "bind"), {"instance_id": claim["instance"]["id"]})
    assert (await told(world, await redeem(world, claim)))["credential_id"] == replacement["id"]


async def test_what_an_instance_used_goes_with_it(world: World) -> None:
    credential = await made(world)
    claim = await working(world, credential)
    await redeem(world, claim)
    await world.complete(claim)
    await world.decommission(claim["instance"]["id"])
    await world.torn_down(await world.claim())
    assert (await world.boss.get(of(world, credential["id"]))).json()["used_by"] == []
    late = await world.boss.post(of(world, credential["id"], "bind"), {"instance_id": claim["instance"]["id"]})
    check_problem(late, 409, "wrong_state")


async def _in_state(world: World, state: str, name: str) -> str:
    credential = (await made(world, name))["id"]
    if state == "rotating":
        await world.boss.ok(of(world, credential, "rotate"))
    if state == "revoked":
        await world.boss.ok(of(world, credential, "revoke"), {"reason": "a test"})
    return credential


async def test_every_action_in_every_state_does_what_the_table_says(world: World) -> None:
    claim = await working(world)
    bodies: dict[str, Any] = {
        "bind": {"instance_id": claim["instance"]["id"]},
        "rotate": {},
        "complete_rotation": {},
        "revoke": {"reason": "a test"},
    }
    assert bodies.keys() == {action for row in CREDENTIAL.moves.values() for action in row} - {REDEEM}
    for state, row in CREDENTIAL.moves.items():
        for action, body in bodies.items():
            path = of(world, await _in_state(world, state, f"{state}-{action}".replace("_", "-")))
            before = (await world.boss.get(path)).json()
            assert (before["state"], set(before["available_actions"])) == (state, set(row) - {REDEEM})
            answer = await world.boss.post(f"{path}/{action.replace('_', '-')}", body)
            if action in row:
                assert answer.json()["state"] == row[action], answer.text
            else:
                check_problem(answer, 409, "wrong_state")
                assert (await world.boss.get(path)).json() == before


# --- sealed where it lies

SWAPS = {
    "rows": "update credential_versions set sealed_private_key = :other where credential_id = :mine and version = 1",
    "versions": "update credential_versions set sealed_private_key = (select sealed_private_key from credential_versions"
    " where credential_id = :mine and version = 2) where credential_id = :mine and version = 1",
    "projects": "update credential_versions set project_id = :blue where credential_id = :mine",
    "tenants": "update credential_versions set tenant_id = 'ten_other' where credential_id = :mine",
}


@pytest.mark.parametrize("swap", SWAPS.values(), ids=SWAPS)
async def test_a_sealed_key_moved_elsewhere_does_not_open(world: World, swap: str) -> None:
    mine, other = await made(world), await made(world, "other")
    await world.boss.ok(of(world, mine["id"], "rotate"))
    claim = await working(world, mine, other)
    find = "select sealed_private_key as it from credential_versions where credential_id = :id"
    theirs = rows(world.platform, find, id=other["id"])[0]["it"]
    known = {"mine": mine["id"], "other": theirs, "blue": world.blue}
    values = {name: value for name, value in known.items() if f":{name}" in swap}
    world.platform.db.write_now(lambda tx: tx.execute(text(swap), values))
    refused = await redeem(world, claim, version=1)
    check_problem(refused, 503, "custody_failed")
    assert rows(world.platform, "select 1 from credential_deliveries") == [], "what was not given is not used up"
    assert (await redeem(world, claim, "other")).status_code == 200


async def test_a_new_data_key_reaches_the_credentials_too(world: World) -> None:
    credential = await made(world)
    claim = await working(world, credential)
    db, vault = world.platform.db, world.platform.vault
    db.write_now(lambda tx: rotate_data_key(tx, vault, world.tenant))
    assert reseal(db, vault) >= 1
    forget_data_keys(db)
    assert (await told(world, await redeem(world, claim)))["credential_id"] == credential["id"]
