"""Access that is taken back: by people, and by the platform itself as soon as its reason is gone."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import ssh
from gpuaas_core.background.trust_maintenance import keep

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    HOST_KEY,
    Api,
    MovableClock,
    World,
    add_node,
    apply_trust,
    hold,
    machine_token,
    service_account,
    trust_of,
)
from core.tests.support.store_rows import one, rows


class Held:
    """A claim, with a certificate for a machine whose agent the test plays."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def begin(self) -> "Held":
        self.node, self.machine, self.key = await add_node(self.world, "host-of-the-test")
        self.allocation = await hold(self.world, self.world.red, self.node, self.machine)
        self.instance = (await self.world.deploy(self.allocation))["instance"]
        self.claim = await self.world.claim()
        self.grant = await self.ask()
        return self

    async def ask(self, by: Api | None = None, **more: Any) -> Any:
        body = {"claim_epoch": self.claim["claim_epoch"], "allocation_id": self.allocation, "ssh_public_key": HOST_KEY}
        path = self.world.operation(self.claim["operation"]["id"], "access-grants")
        return await (by or self.world.controller).ok(path, body | more)

    @property
    def serial(self) -> str:
        certificate = ssh.load_ssh_public_identity(self.grant["certificate"].encode())
        assert isinstance(certificate, ssh.SSHCertificate)
        return str(certificate.serial)

    async def trust(self) -> Any:
        return await trust_of(self.node, self.machine)

    async def listed(self, **query: Any) -> list[Any]:
        path = f"/v1/projects/{self.world.red}/access-grants"
        return (await self.world.boss.call("GET", path, params=query)).json()["items"]

    def why(self) -> str | None:
        return one(self.world.platform, "select revoke_reason from access_grants where id = :g", g=self.grant["id"])


@pytest.fixture
async def held(world: World) -> Held:
    return await Held(world).begin()


def of(world: World, grant_id: str) -> str:
    return f"/v1/projects/{world.red}/access-grants/{grant_id}/revoke"


async def test_a_person_takes_a_certificate_back_and_its_host_is_told(world: World, held: Held) -> None:
    (shown,) = await held.listed()
    assert (shown["id"], shown["serial"], shown["node_name"]) == (held.grant["id"], held.serial, "host-of-the-test")
    assert shown["principal_name"] == "controller"
    assert "certificate" not in shown
    before = await held.trust()
    assert before["revoked_serials"] == []
    done = await world.boss.ok(of(world, held.grant["id"]), {"reason": "a laptop was stolen"})
    assert (done["enforced"], done["revoke_reason"]) == (False, "a laptop was stolen")
    after = await held.trust()
    assert after["generation"] == before["generation"] + 1
    assert after["revoked_serials"] == [held.serial]
    await apply_trust(held.node, held.machine)
    assert await held.listed() == []
    assert [row["enforced"] for row in await held.listed(revoked=True)] == [True]
    told = rows(world.platform, "select data from events where type = 'custody.access.revoked'")
    assert len(told) == 1
    again = await world.boss.ok(of(world, held.grant["id"]), {"reason": "once more"})
    assert again["revoke_reason"] == "a laptop was stolen"
    assert (await held.trust())["generation"] == after["generation"], "a second revoke told the host something new"


async def test_an_expired_certificate_needs_no_revoking_and_leaves_the_list(
    world: World, held: Held, clock: MovableClock
) -> None:
    await world.boss.ok(of(world, held.grant["id"]), {"reason": "gone"})
    other = await held.ask()
    clock.forward(301)
    check_problem(await world.boss.post(of(world, other["id"]), {"reason": "late"}), 409, "grant_over")
    held.machine = await machine_token(world.api, held.key, held.node, world.now())
    assert (await held.trust())["revoked_serials"] == [held.serial], "a host's clock may be behind"
    clock.forward(15 * 60)
    held.machine = await machine_token(world.api, held.key, held.node, world.now())
    assert (await held.trust())["revoked_serials"] == []


async def _released(world: World, held: Held, clock: MovableClock) -> None:
    path = world.operation(held.claim["operation"]["id"], "return-claim")
    await world.controller.ok(path, {"claim_epoch": held.claim["claim_epoch"], "retry_in_s": 60, "reason": "later"})


async def _taken_over(world: World, held: Held, clock: MovableClock) -> None:
    clock.forward(31)
    assert (await world.claim("another", by=world.second))["claim_epoch"] == 2


async def _taken_back(world: World, held: Held, clock: MovableClock) -> None:
    assert (await world.claim())["claim_epoch"] == 2


async def _completed(world: World, held: Held, clock: MovableClock) -> None:
    await world.complete(held.claim)


async def _failed(world: World, held: Held, clock: MovableClock) -> None:
    await world.fail(held.claim)


async def _disabled(world: World, held: Held, clock: MovableClock) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/disable")


async def _deleted(world: World, held: Held, clock: MovableClock) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{world.controller_id}/delete")


async def _key_retired(world: World, held: Held, clock: MovableClock) -> None:
    accounts = f"/v1/projects/{world.red}/service-accounts/{world.controller_id}"
    (key,) = (await world.boss.get(f"{accounts}/keys")).json()["items"]
    await world.boss.ok(f"{accounts}/keys/{key['id']}/retire")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (_released, "no claim holds its operation any more"),
        (_taken_over, "a newer claim holds its operation"),
        (_taken_back, "a newer claim holds its operation"),
        (_completed, "no claim holds its operation any more"),
        (_failed, "no claim holds its operation any more"),
        (_disabled, "its account is disabled"),
        (_deleted, "its account is disabled"),
        (_key_retired, "the key it was requested with is retired"),
    ],
)
async def test_a_grant_ends_with_what_it_was_given_for(
    world: World, held: Held, clock: MovableClock, end: Any, reason: str
) -> None:
    keep(world.platform)
    assert held.why() is None, "it ended although nothing has happened"
    await end(world, held, clock)
    keep(world.platform)
    assert held.why() == reason
    assert (await held.trust())["revoked_serials"] == [held.serial]
    audited = rows(world.platform, "select reason from audit where resource_id = :g", g=held.grant["id"])
    assert {"reason": reason} in audited


async def test_only_the_retired_keys_certificates_end(world: World, held: Held) -> None:
    """The account signs in with a second key; what was asked for with that one stays good."""
    account = f"/v1/projects/{world.red}/service-accounts/{world.controller_id}"
    (old,) = (await world.boss.get(f"{account}/keys")).json()["items"]
    _, _, key = await service_account(world, world.blue)
    await world.boss.ok(f"{account}/keys", {"public_jwk": key.as_dict(private=False)})
    fresh = await machine_token(world.api, key, world.controller_id, world.now())
    other = await held.ask(by=fresh)
    await world.boss.ok(f"{account}/keys/{old['id']}/retire")
    keep(world.platform)
    assert [row["id"] for row in await held.listed()] == [other["id"]]


async def test_given_back_means_that_its_certificates_are_revoked_in_the_same_generation(
    world: World, held: Held
) -> None:
    await world.complete(held.claim)
    await world.decommission(held.instance["id"])
    held.claim = await world.claim()
    held.grant = await held.ask()
    await world.torn_down(held.claim)
    await world.boss.ok(f"/v1/projects/{world.red}/allocations/{held.allocation}/release")
    trust = await apply_trust(held.node, held.machine)
    assert trust["principals"] == {"root": []}
    assert held.serial in trust["revoked_serials"]
    assert (await world.boss.get(f"/v1/projects/{world.red}/allocations/{held.allocation}")).json()[
        "state"
    ] == "released"


async def test_no_certificate_is_given_for_a_retired_machine(world: World, held: Held) -> None:
    """So its host certificate, though it lives on, is one that no client asks for."""
    await world.complete(held.claim)
    await world.decommission(held.instance["id"])
    claim = await world.claim()
    await world.torn_down(claim)
    await world.boss.ok(f"/v1/projects/{world.red}/allocations/{held.allocation}/release")
    await apply_trust(held.node, held.machine)
    await world.boss.ok(f"/v1/nodes/{held.node}/drain", {})
    await world.boss.ok(f"/v1/nodes/{held.node}/retire", {})
    refused = await world.boss.post(f"/v1/projects/{world.red}/allocations", {"node_id": held.node})
    check_problem(refused, 409, "node_not_ready")
    body = {"claim_epoch": claim["claim_epoch"], "allocation_id": held.allocation, "ssh_public_key": HOST_KEY}
    for op in (claim["operation"]["id"], held.claim["operation"]["id"]):
        assert (await world.controller.post(world.operation(op, "access-grants"), body)).status_code in (404, 409)


async def test_a_certificate_can_be_bound_to_addresses(world: World, held: Held) -> None:
    held.grant = await held.ask(source_addresses=["10.1.2.3", "192.0.2.0/24", "2001:db8::/32"])
    certificate = ssh.load_ssh_public_identity(held.grant["certificate"].encode())
    assert isinstance(certificate, ssh.SSHCertificate)
    assert certificate.critical_options == {b"source-address": b"10.1.2.3/32,192.0.2.0/24,2001:db8::/32"}
    shown = next(row for row in await held.listed() if row["id"] == held.grant["id"])
    assert shown["source_addresses"] == ["10.1.2.3/32", "192.0.2.0/24", "2001:db8::/32"]


@pytest.mark.parametrize("wrong", ["10.0.0.0/33", "everywhere", "10.0.0.1,10.0.0.2", "10.0.0.1/8", "", "!10.0.0.1"])
async def test_what_is_no_address_is_refused(world: World, held: Held, wrong: str) -> None:
    body = {"claim_epoch": 1, "allocation_id": held.allocation, "ssh_public_key": HOST_KEY, "source_addresses": [wrong]}
    path = world.operation(held.claim["operation"]["id"], "access-grants")
    check_problem(await world.controller.post(path, body), 422, "invalid_request")


async def test_another_project_sees_and_revokes_nothing(world: World, held: Held) -> None:
    elsewhere = f"/v1/projects/{world.blue}/access-grants"
    assert (await world.boss.get(elsewhere)).json()["items"] == []
    check_problem(await world.boss.post(f"{elsewhere}/{held.grant['id']}/revoke", {"reason": "x"}), 404, "not_found")
    assert held.why() is None
