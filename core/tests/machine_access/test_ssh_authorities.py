"""One SSH authority takes over from another: no account is locked out on the way, and the old key is gone in the end."""

import asyncio
import threading
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, ssh
from gpuaas_core.background.trust_maintenance import keep
from gpuaas_core.machine_access.authorities import HOST_CERTIFICATE_S, sign_user

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import HOST_KEY, Api, MovableClock, World, add_node, apply_trust, join, trust_of
from core.tests.support.store_rows import one, rows


def of(world: World, verb: str = "") -> str:
    return f"/v1/tenants/{world.tenant}/ssh-authorities" + (f"/{verb}" if verb else "")


async def states(world: World, purpose: str) -> dict[int, str]:
    items = (await world.boss.get(of(world))).json()["items"]
    return {item["number"]: item["state"] for item in items if item["purpose"] == purpose}


async def waiting(world: World, purpose: str) -> list[str]:
    items = (await world.boss.get(of(world))).json()["items"]
    return [name for item in items if item["purpose"] == purpose for name in item["waits_for"]]


async def grant(world: World, claim: Any, **more: Any) -> dict[str, Any]:
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": world.allocations[0], "ssh_public_key": HOST_KEY}
    return await world.controller.ok(world.operation(claim["operation"]["id"], "access-grants"), body | more)


def signer(certificate: str) -> str:
    found = ssh.load_ssh_public_identity(certificate.encode())
    assert isinstance(found, ssh.SSHCertificate)
    return found.signature_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


async def machines(world: World, catch_up: bool = True) -> dict[str, Api]:
    """A small tenant's hosts: those of the world are replaced by two whose agents we can play."""
    for node in world.nodes:
        world.platform.db.write_now(
            lambda tx, n=node: tx.exec_driver_sql(f"update nodes set state='lost' where id='{n}'")
        )
    found = {}
    for name in ("alpha", "beta"):
        node, api, _ = await add_node(world, name)
        found[node] = api
    return found


async def applied(hosts: dict[str, Api]) -> dict[str, Any]:
    return {node: await apply_trust(node, api) for node, api in hosts.items()}


async def test_a_user_authority_signs_only_when_every_living_host_trusts_it(world: World) -> None:
    hosts = await machines(world)
    await world.deploy()
    claim = await world.claim()
    before = signer((await grant(world, claim))["certificate"])
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    keep(world.platform)
    assert await states(world, "user") == {1: "active", 2: "next"}
    assert await waiting(world, "user") == ["alpha", "beta"]
    assert signer((await grant(world, claim))["certificate"]) == before, "a key hosts may not know signs already"
    trusts = await applied(hosts)
    assert {len(trust["user_ca_public_keys"]) for trust in trusts.values()} == {2}, "the overlap has one authority"
    keep(world.platform)
    assert await states(world, "user") == {1: "retiring", 2: "active"}
    after = signer((await grant(world, claim))["certificate"])
    assert after != before
    assert await states(world, "host") == {1: "active"}
    assert [after in trust["user_ca_public_keys"] for trust in trusts.values()] == [True, True]


async def test_the_old_user_authority_goes_when_no_certificate_of_it_is_left(world: World, clock: MovableClock) -> None:
    hosts = await machines(world)
    await world.deploy()
    claim = await world.claim()
    given = await grant(world, claim)
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    await applied(hosts)
    keep(world.platform)
    keep(world.platform)
    assert await waiting(world, "user") == [given["id"]], "who uses the old one is not told"
    clock.forward(29)
    await world.controller.ok(
        world.operation(claim["operation"]["id"], "heartbeat"), {"claim_epoch": claim["claim_epoch"]}
    )
    assert await states(world, "user") == {1: "retiring", 2: "active"}
    clock.forward(301)
    keep(world.platform)
    assert await states(world, "user") == {1: "retired", 2: "active"}
    stored = rows(
        world.platform, "select number, sealed_private_key is null as gone from ssh_authorities where purpose='user'"
    )
    assert {row["number"]: bool(row["gone"]) for row in stored} == {1: True, 2: False}, "a retired key still exists"


async def test_a_host_authority_waits_for_clients_and_then_signs_every_host_again(world: World) -> None:
    hosts = await machines(world)
    await world.deploy()
    claim = await world.claim()
    first = await grant(world, claim)
    assert len(first["host_ca_public_keys"]) == 1
    await world.boss.ok(of(world, "rotate"), {"purpose": "host"})
    keep(world.platform)
    assert await states(world, "host") == {1: "active", 2: "next"}
    assert await waiting(world, "host") == [first["id"]], "a client that knows only the old one would be locked out"
    second = await grant(world, claim)
    assert second["host_ca_public_key"] == first["host_ca_public_key"]
    assert len(second["host_ca_public_keys"]) == 2
    path = f"/v1/projects/{world.red}/access-grants/{first['id']}/revoke"
    await world.boss.ok(path, {"reason": "the test does not wait five minutes"})
    keep(world.platform)
    assert await states(world, "host") == {1: "retiring", 2: "active"}
    assert await waiting(world, "host") == ["alpha", "beta"]
    trusts = await applied(hosts)
    new = set(second["host_ca_public_keys"]) - {first["host_ca_public_key"]}
    assert {signer(trust["host_certificate"]) for trust in trusts.values()} == new
    keep(world.platform)
    assert await states(world, "host") == {1: "retired", 2: "active"}
    assert set((await grant(world, claim))["host_ca_public_keys"]) == new


async def test_a_lost_host_delays_no_rotation_and_catches_up_when_it_is_back(world: World) -> None:
    hosts = await machines(world)
    (lost, api), (_, _) = hosts.items()
    world.platform.db.write_now(lambda tx: tx.exec_driver_sql(f"update nodes set state='lost' where id='{lost}'"))
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    await applied({node: one for node, one in hosts.items() if node != lost})
    keep(world.platform)
    assert 2 in await states(world, "user")
    assert (await states(world, "user"))[2] == "active"
    trust = await apply_trust(lost, api)
    signing = one(world.platform, "select public_key from ssh_authorities where purpose='user' and state='active'")
    assert signing in trust["user_ca_public_keys"]


async def test_finish_names_who_lags_and_force_leaves_them_behind(world: World) -> None:
    await machines(world)
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    refused = await world.boss.post(of(world, "finish"), {"purpose": "user"})
    check_problem(refused, 409, "authority_in_use")
    assert refused.json()["waits_for"] == ["alpha", "beta"]
    await world.boss.ok(of(world, "finish"), {"purpose": "user", "force": True})
    assert await states(world, "user") == {1: "retiring", 2: "active"}
    check_problem(await world.boss.post(of(world, "rotate"), {"purpose": "user"}), 409, "authority_rotates")
    await world.boss.ok(of(world, "finish"), {"purpose": "user"})
    assert await states(world, "user") == {1: "retired", 2: "active"}
    check_problem(await world.boss.post(of(world, "finish"), {"purpose": "user"}), 404, "not_found")
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    assert await states(world, "user") == {1: "retired", 2: "active", 3: "next"}


async def test_a_host_that_joins_in_the_middle_is_no_exception(world: World) -> None:
    hosts = await machines(world)
    await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
    node, api, _ = await join(world, "gamma")
    trust = await trust_of(node, api)
    assert len(trust["user_ca_public_keys"]) == 2
    await applied(hosts | {node: api})
    keep(world.platform)
    assert (await states(world, "user"))[2] == "active"


async def test_every_step_is_told_and_no_private_half_is(world: World) -> None:
    hosts = await machines(world)
    for purpose in ("user", "host"):
        await world.boss.ok(of(world, "rotate"), {"purpose": purpose})
    for _ in range(3):
        await applied(hosts)
        keep(world.platform)
    told = rows(world.platform, "select type, data from events where type like 'custody.authority.%' order by sequence")
    assert [row["type"].rsplit(".", 1)[1] for row in told].count("retired") == 2
    assert not any("PRIVATE" in str(row["data"]) for row in told)
    unaudited = "select type from events where correlation_id not in (select correlation_id from audit)"
    assert rows(world.platform, f"{unaudited} and type <> 'capacity.node.ready'") == []
    answer = (await world.boss.get(of(world))).text
    assert "PRIVATE" not in answer
    assert "sealed" not in answer


async def test_host_certificates_are_renewed_at_two_thirds_of_their_life(world: World, clock: MovableClock) -> None:
    node, *_ = await add_node(world, "alpha")
    clock.forward(HOST_CERTIFICATE_S * 2 / 3 - 60)
    keep(world.platform)
    assert one(world.platform, "select trust_generation from nodes where id = :n", n=node) == 1
    clock.forward(120)
    keep(world.platform)
    (row,) = rows(world.platform, "select trust_generation, host_certificate from nodes where id = :n", n=node)
    assert row["trust_generation"] == 2
    certificate = ssh.load_ssh_public_identity(row["host_certificate"].encode())
    assert isinstance(certificate, ssh.SSHCertificate)
    assert certificate.valid_before - world.now() > HOST_CERTIFICATE_S - 60
    assert certificate.valid_principals == [node.encode()]
    keep(world.platform)
    assert one(world.platform, "select trust_generation from nodes where id = :n", n=node) == 2, "renewed for nothing"


@pytest.mark.parametrize("purpose", ["user", "host"])
async def test_a_vault_that_is_away_stops_a_rotation_and_nothing_else(
    world: World, purpose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = await machines(world)
    await world.boss.ok(of(world, "rotate"), {"purpose": purpose})
    await applied(hosts)

    def away(*_args: Any) -> bytes:
        raise RuntimeError("the holder does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(world.platform.vault, "unseal", away)
        try:
            keep(world.platform)
        except RuntimeError:
            assert purpose == "host"  # only this step signs something
            assert await states(world, purpose) == {1: "active", 2: "next"}
    keep(world.platform)
    assert (await states(world, purpose))[2] == "active"


async def test_of_many_who_rotate_at_once_one_begins(world: World) -> None:
    answers = await asyncio.gather(*(world.boss.post(of(world, "rotate"), {"purpose": "user"}) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert await states(world, "user") == {1: "active", 2: "next"}


async def test_certificates_are_signed_all_through_the_rotations(world: World) -> None:
    """On PostgreSQL the ones that take over and the ones that sign really meet."""
    await machines(world)
    stop, errors, signed = threading.Event(), [], set()

    def sign() -> None:
        db, named = world.platform.db, {"key_line": HOST_KEY, "principal": "p", "key_id": "op_1/1"}
        while not stop.is_set():
            try:
                made = db.write_now(
                    lambda tx: sign_user(tx, world.platform.vault, world.tenant, **named, now=world.platform.clock())
                )
                signed.add(made.authority)
            except Exception as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=sign) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            before = len(signed)
            await world.boss.ok(of(world, "rotate"), {"purpose": "user"})
            await world.boss.ok(of(world, "finish"), {"purpose": "user", "force": True})
            async with asyncio.timeout(60):
                while len(signed) == before and not errors:  # noqa: ASYNC110 - a thread cannot be awaited
                    await asyncio.sleep(0.01)
            await world.boss.ok(of(world, "finish"), {"purpose": "user", "force": True})
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert errors == []
    assert len(signed) >= 3
    assert (await states(world, "user"))[5] == "active"
