"""People on the machines of members: who gets a certificate, what it says, and everything that ends it."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import ssh
from gpuaas_agent import people
from gpuaas_core.background.trust_maintenance import keep
from gpuaas_core.machine_access.ssh_sessions import LASTS_S

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import (
    HOST_KEY,
    Api,
    MovableClock,
    World,
    add_node,
    add_user,
    apply_trust,
    hold,
    machine_token,
    sign_in,
    trust_of,
)
from core.tests.support.store_rows import one, rows

KEY = {"ssh_public_key": HOST_KEY}


class Open:
    """A running instance on a machine whose agent the test plays, and a session that was asked for."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def begin(self) -> "Open":
        self.node, self.machine, self.key = await add_node(self.world, "host-of-the-test")
        self.allocation = await hold(self.world, self.world.red, self.node, self.machine)
        made = (await self.world.deploy(self.allocation))["instance"]
        await self.world.complete(await self.world.claim())
        self.instance = await self.world.instance(made["id"])
        self.member = self.instance["members"][0]["id"]
        await self.ask(self.world.boss, self.world.boss_id)
        return self

    async def ask(self, who: Api, who_id: str) -> None:
        self.who, self.who_id = who, who_id
        self.session = await who.ok(self.path, KEY)

    @property
    def path(self) -> str:
        return self.world.of(self.instance, "members", self.member, "ssh-sessions")

    @property
    def certificate(self) -> ssh.SSHCertificate:
        found = ssh.load_ssh_public_identity(self.session["certificate"].encode())
        assert isinstance(found, ssh.SSHCertificate)
        return found

    async def trust(self) -> Any:
        return await trust_of(self.node, self.machine)

    def why(self) -> str | None:
        query = "select revoke_reason from access_grants where id = :g"
        return one(self.world.platform, query, g=self.session["id"])


@pytest.fixture
async def opened(world: World) -> Open:
    return await Open(world).begin()


async def test_a_persons_certificate_is_not_a_controllers(world: World, opened: Open) -> None:
    certificate, trust = opened.certificate, await opened.trust()
    assert certificate.valid_principals == [f"{opened.allocation}.people".encode()]
    assert [f"{opened.allocation}.people"] == trust["people"]
    assert trust["principals"] == {"root": [opened.allocation]}
    assert certificate.key_id == f"{opened.who_id}/1".encode(), "the machine's log says who it was"
    assert certificate.extensions == {b"permit-pty": b""}
    assert certificate.valid_before - world.now() <= 300
    session = opened.session
    assert (session["host_principal"], session["member_id"]) == (opened.node, opened.member)
    assert (session["principal"], session["expires_in_s"]) == (f"{opened.allocation}.people", 300)


async def test_it_is_on_record_and_told(world: World, opened: Open) -> None:
    (shown,) = (await world.boss.get(f"/v1/projects/{world.red}/access-grants")).json()["items"]
    assert (shown["purpose"], shown["member_id"]) == ("person", opened.member)
    assert shown["principal_id"] == opened.who_id
    assert shown["ends_at"] > shown["expires_at"]
    told = rows(world.platform, "select data from events where type = 'apps.access.opened'")
    assert len(told) == 1
    query = "select permission, outcome from audit where resource_id = :m and actor_id = :u"
    audited = rows(world.platform, query, m=opened.member, u=opened.who_id)
    assert audited == [{"permission": "apps.access.enter", "outcome": "allowed"}]


def test_the_machine_ends_a_session_when_the_book_says_so() -> None:
    assert people.LASTS_S == LASTS_S


async def test_a_viewer_is_refused_with_a_sentence_and_a_stranger_sees_nothing(world: World, opened: Open) -> None:
    refused = check_problem(await world.viewer.post(opened.path, KEY), 403, "permission_denied")
    assert "apps.access.enter" in refused["detail"]
    check_problem(await world.controller.post(opened.path, KEY), 403, "permission_denied")
    stranger, _ = await add_user(world, "other@acme.example", "project_admin", project=world.blue)
    check_problem(await stranger.post(opened.path, KEY), 404, "not_found")
    elsewhere = opened.path.replace(world.red, world.blue)
    check_problem(await stranger.post(elsewhere, KEY), 404, "not_found")


async def test_only_a_fresh_kind_of_key_is_certified(opened: Open) -> None:
    check_problem(await opened.who.post(opened.path, {"ssh_public_key": "ssh-rsa AAAA"}), 422, "ssh_key_not_accepted")


async def test_a_deny_rule_goes_before_the_role(world: World, opened: Open) -> None:
    rule = {"permissions": ["apps.access.enter"], "reason": "audit week"}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", rule)
    refused = check_problem(await opened.who.post(opened.path, KEY), 403, "permission_denied")
    assert "audit week" in refused["detail"]
    keep(world.platform)
    assert opened.why() == "its holder may not enter machines any more"


def _state(world: World, table: str, id: str, state: str) -> None:
    with world.platform.db.engine.begin() as tx:
        tx.exec_driver_sql(f"update {table} set state = '{state}' where id = '{id}'")


CLOSED_MACHINES = [
    ("members", "removing", "member_not_enterable", "The member is removing."),
    ("members", "removed", "member_not_enterable", "The member is removed."),
    ("nodes", "lost", "member_not_enterable", "does not report"),
    ("nodes", "suspended", "node_suspended", "no certificate opens it"),
    ("allocations", "releasing", "member_not_enterable", "not held by the project"),
]


async def test_the_refusal_names_why_a_machine_is_closed(world: World, opened: Open) -> None:
    ids = {"members": opened.member, "nodes": opened.node, "allocations": opened.allocation}
    for table, state, code, sentence in CLOSED_MACHINES:
        former = one(world.platform, f"select state from {table} where id = :id", id=ids[table])
        _state(world, table, ids[table], state)
        refused = check_problem(await opened.who.post(opened.path, KEY), 409, code)
        assert sentence in refused["detail"]
        _state(world, table, ids[table], former)


async def test_a_fenced_machine_lets_no_account_in(world: World, opened: Open) -> None:
    with world.platform.db.engine.begin() as tx:
        tx.exec_driver_sql(
            "update operations set kind = 'remove_member', status = 'running', target_kind = 'member', target_id = "
            f"'{opened.member}', params = '{{\"host_is_gone\": true}}' where lock_key = '{opened.instance['id']}'"
        )
    check_problem(await opened.who.post(opened.path, KEY), 409, "host_fenced")


async def _unbound(world: World, opened: Open) -> str:
    query = "select id from role_bindings where principal_id = :u"
    binding = one(world.platform, query, u=opened.who_id)
    await world.boss.ok(f"/v1/tenants/{world.tenant}/role-bindings/{binding}/remove")
    return "its holder may not enter machines any more"


async def _disabled(world: World, opened: Open) -> str:
    await world.boss.ok(f"/v1/tenants/{world.tenant}/users/{opened.who_id}/disable")
    return "its account is disabled"


async def _leaving(world: World, opened: Open) -> str:
    await world.decommission(opened.instance["id"])
    return "the member leaves its machine"


async def _no_longer_held(world: World, opened: Open) -> str:
    with world.platform.db.engine.begin() as tx:
        tx.exec_driver_sql(f"delete from allocation_holds where allocation_id = '{opened.allocation}'")
    return "its machine is no longer part of the instance"


@pytest.mark.parametrize("end", [_unbound, _disabled, _leaving, _no_longer_held])
async def test_a_session_ends_with_what_it_rests_on_long_after_its_certificate(
    world: World, opened: Open, clock: MovableClock, end: Any
) -> None:
    if end in (_unbound, _disabled):
        await opened.ask(*await add_user(world, "ops@acme.example", "project_admin", project=world.red))
    clock.forward(400)
    opened.machine = await machine_token(world.api, opened.key, opened.node, world.now())
    keep(world.platform)
    assert opened.why() is None, "it ended although nothing has happened"
    reason = await end(world, opened)
    keep(world.platform)
    assert opened.why() == reason
    assert (await opened.trust())["revoked_serials"] == [str(opened.certificate.serial)]
    audited = rows(world.platform, "select reason from audit where resource_id = :g", g=opened.session["id"])
    assert {"reason": reason} in audited


async def test_other_operations_leave_it_alone(world: World, opened: Open) -> None:
    """To look while something is mended is what people come for."""
    await world.boss.ok(world.of(opened.instance, "restart"))
    keep(world.platform)
    claim = await world.claim()
    keep(world.platform)
    await world.fail(claim)
    keep(world.platform)
    assert opened.why() is None
    await opened.who.ok(opened.path, KEY)


async def test_a_session_is_ended_while_it_may_last_and_not_after(
    world: World, opened: Open, clock: MovableClock
) -> None:
    other = await opened.who.ok(opened.path, KEY)
    clock.forward(7 * 3600)
    await _again(world, opened)
    revoke = f"/v1/projects/{world.red}/access-grants/{{}}/revoke"
    done = await world.boss.ok(revoke.format(opened.session["id"]), {"reason": "a laptop was stolen"})
    assert done["enforced"] is False
    await apply_trust(opened.node, opened.machine)
    (shown,) = (await world.boss.get(f"/v1/projects/{world.red}/access-grants")).json()["items"]
    assert shown["id"] == other["id"], "a session of another certificate ended"
    clock.forward(2 * 3600)
    await _again(world, opened)
    check_problem(await world.boss.post(revoke.format(other["id"]), {"reason": "late"}), 409, "grant_over")
    assert (await opened.trust())["revoked_serials"] == []


async def test_giving_the_allocation_back_puts_everybody_out_in_the_same_generation(world: World, opened: Open) -> None:
    await world.decommission(opened.instance["id"])
    await world.torn_down(await world.claim())
    await world.boss.ok(f"/v1/projects/{world.red}/allocations/{opened.allocation}/release")
    trust = await apply_trust(opened.node, opened.machine)
    assert (trust["people"], trust["principals"]) == ([], {"root": []})
    assert str(opened.certificate.serial) in trust["revoked_serials"]


async def test_a_new_authority_does_not_wait_for_open_sessions(world: World, opened: Open, clock: MovableClock) -> None:
    clock.forward(400)
    await world.boss.ok(f"/v1/tenants/{world.tenant}/ssh-authorities/rotate", {"purpose": "host"})
    found = (await world.boss.get(f"/v1/tenants/{world.tenant}/ssh-authorities")).json()["items"]
    assert opened.session["id"] not in [who for row in found for who in row["waits_for"]]


async def test_a_departure_counts_people_who_are_still_in_there(world: World, opened: Open) -> None:
    await world.decommission(opened.instance["id"])
    await world.torn_down(await world.claim())
    path = f"/v1/projects/{world.red}/departure-certificates"
    (found,) = (await world.boss.get(path)).json()["items"]
    assert found["access"]["open_grants"] == 1
    keep(world.platform)
    (found,) = (await world.boss.get(path)).json()["items"]
    assert found["access"] == {"open_grants": 0, "grants_not_yet_refused": 1}
    await apply_trust(opened.node, opened.machine)
    (found,) = (await world.boss.get(path)).json()["items"]
    assert found["access"] == {"open_grants": 0, "grants_not_yet_refused": 0}


async def _again(world: World, opened: Open) -> None:
    """Tokens do not live as long as sessions."""
    opened.machine = await machine_token(world.api, opened.key, opened.node, world.now())
    world.boss = await sign_in(world.api, "boss@acme.example")
