"""Delivery to a machine: allowed by everybody who may refuse, again and again until the first byte; and whole."""

import random
from typing import Any

import pytest
from gpuaas_core.artifacts import resolution
from gpuaas_core.artifacts.fetch import Reader
from gpuaas_core.artifacts.tables import artifact_sources
from gpuaas_core.authz.evaluate import PLATFORM
from gpuaas_core.kit.wire import canonical
from gpuaas_core.policy.errors import PolicyDenied
from gpuaas_core.policy.reads import overlays_for
from gpuaas_core.policy.tables import policies
from gpuaas_core.tenancy.reads import project_scope
from sqlalchemy import delete, insert, select

from core.tests.http.test_bad_input import check_problem
from core.tests.support.artifact_scene import at, deliver, digest, ended, project, push, register, set_policy, tenant
from core.tests.support.fixtures import MovableClock, World, add_node, hold
from core.tests.support.store_rows import one, rows

CONTENT = b"a package set" * 5000
DENY = {"deny": ["builtin"]}


async def held_machine(world: World, name: str = "for-artifacts") -> tuple[str, Any]:
    node, machine, _ = await add_node(world, name)
    await hold(world, world.red, node, machine)
    return node, machine


async def test_a_machine_gets_exactly_what_was_registered_and_says_so(world: World) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    delivery = deliver(world, artifact["id"], node, task_id="task_1")
    assert (delivery.sha256, delivery.size, delivery.state) == (digest(CONTENT), len(CONTENT), "offered")
    answer = await machine.get(at(delivery))
    assert answer.status_code == 200
    assert answer.content == CONTENT
    assert answer.headers["etag"] == f'"sha256:{digest(CONTENT)}"'
    assert int(answer.headers["content-length"]) == len(CONTENT)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert ended(world, "task_1", received=True) == 1
    assert ended(world, "task_1", received=True) == 0, "a lost answer is told again"
    check_problem(await machine.get(at(delivery)), 410, "artifact_delivery_over")
    told = (await world.boss.get(project(world, "events"), params={"limit": 200})).json()["items"]
    kinds = [e["type"] for e in told if e["type"].startswith("artifacts.delivery")]
    assert kinds == ["artifacts.delivery.offered", "artifacts.delivery.received"]


async def test_a_broken_download_goes_on_where_it_was(world: World) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    delivery = deliver(world, artifact["id"], node)
    rest = await machine.get(at(delivery), headers={"Range": "bytes=60000-"})
    assert (rest.status_code, rest.content) == (206, CONTENT[60000:])
    assert rest.headers["content-range"] == f"bytes 60000-{len(CONTENT) - 1}/{len(CONTENT)}"
    for odd in (f"bytes={len(CONTENT)}-", "bytes=-5", "bytes=1-2,4-5", "lines=1-", "bytes=" + "9" * 40 + "-"):
        answer = await machine.get(at(delivery), headers={"Range": odd})
        assert (answer.status_code, answer.content) == (200, CONTENT), odd


async def test_only_the_machine_itself_can_fetch(world: World) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    delivery = deliver(world, artifact["id"], node)
    assert (await world.machine.get(at(delivery))).status_code == 404
    borrowed = at(delivery).replace(node, world.nodes[2])  # its own address, another node's delivery
    assert (await world.machine.get(borrowed)).status_code == 404
    assert (await world.boss.get(at(delivery))).status_code == 403
    for caller in (world.viewer, world.controller):
        assert (await caller.get(at(delivery))).status_code == 404
    assert (await machine.get(at(delivery))).status_code == 200


async def test_a_delivery_is_over_with_its_ten_minutes_and_with_its_task(world: World, clock: MovableClock) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    late, over = deliver(world, artifact["id"], node), deliver(world, artifact["id"], node, task_id="task_1")
    assert ended(world, "task_1") == 1
    assert ended(world, "task_1") == 0
    check_problem(await machine.get(at(over)), 410, "artifact_delivery_over")
    clock.forward(590)
    assert (await machine.get(at(late))).status_code == 200
    clock.forward(11)
    check_problem(await machine.get(at(late)), 410, "artifact_delivery_over")


async def test_a_machine_the_project_does_not_hold_gets_nothing(world: World) -> None:
    artifact = await register(world, CONTENT)
    with pytest.raises(Exception, match="No allocation of the project holds"):
        deliver(world, artifact["id"], world.nodes[2])  # held by the blue project
    node, machine, _ = await add_node(world, "given-back")
    allocation = await hold(world, world.red, node, machine)
    delivery = deliver(world, artifact["id"], node)
    await world.boss.ok(project(world, "allocations", allocation, "release"))
    check_problem(await machine.get(at(delivery)), 409, "artifact_node_not_held")


async def test_the_platform_itself_delivers_to_machines_without_an_allocation(world: World) -> None:
    """An agent's own upgrade, say: for no project, but still only where the tenant's policies allow it."""
    artifact = await register(world, CONTENT)
    node, machine, _ = await add_node(world, "idle")
    with pytest.raises(Exception, match="No allocation of the project holds"):
        deliver(world, artifact["id"], node)
    delivery = deliver(world, artifact["id"], node, project_id=None)
    assert (await machine.get(at(delivery))).content == CONTENT
    await set_policy(world.boss, tenant(world), DENY)
    check_problem(await machine.get(at(delivery)), 403, "policy_denied")


async def test_a_file_changed_on_the_disk_is_not_delivered_until_it_is_pushed_again(world: World) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    delivery = deliver(world, artifact["id"], node)
    (file,) = world.platform.services.get(Reader).store.folder.glob("kept/??/*")
    file.write_bytes(CONTENT[:-1] + b"!")
    check_problem(await machine.get(at(delivery)), 500, "artifact_content_damaged")
    assert (await push(world.boss, tenant(world), CONTENT)).status_code == 201
    assert (await machine.get(at(delivery))).content == CONTENT


# --- policy: at resolve and again at fetch


async def _resolve(world: World, artifact: Any, **more: Any) -> Any:
    return await world.viewer.post(project(world, "artifacts", "resolve"), {"artifact_id": artifact["id"]} | more)


@pytest.mark.parametrize("level", ["platform", "tenant", "project"])
async def test_a_denied_source_is_refused_at_resolve_and_at_fetch(world: World, level: str) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    assert (await _resolve(world, artifact)).json()["allowed"] is True
    delivery = deliver(world, artifact["id"], node)
    places = {
        "platform": (world.admin, "/v1"),
        "tenant": (world.boss, tenant(world)),
        "project": (world.boss, project(world)),
    }
    await set_policy(*places[level], DENY)
    for refused in (await _resolve(world, artifact), await machine.get(at(delivery))):
        check_problem(refused, 403, "policy_denied")
        assert refused.json()["policy"]["level"] == level
    with pytest.raises(PolicyDenied):
        deliver(world, artifact["id"], node)
    seen = (await world.viewer.get(project(world, "artifacts", artifact["id"]))).json()
    assert seen["allowed"] is False
    assert "denied by" in seen["reason"]
    audit = rows(world.platform, "select permission from audit where outcome = 'denied' order by at, sequence")
    assert [r["permission"] for r in audit][-2:] == ["artifacts.artifact.read", "artifacts.delivery.fetch"]
    assert one(world.platform, "select fetches from artifact_deliveries") == 0


async def test_a_tenants_overlay_cannot_lift_a_deny_of_the_platform(world: World) -> None:
    artifact = await register(world, CONTENT)
    await set_policy(world.admin, "/v1", DENY)
    await set_policy(world.boss, tenant(world), {"only": ["builtin"]})
    await set_policy(world.boss, project(world), {"only": ["builtin", "acme.builtin"]})
    refused = await _resolve(world, artifact)
    check_problem(refused, 403, "policy_denied")
    assert refused.json()["policy"]["level"] == "platform"


@pytest.mark.parametrize("what", ["disabled", "withdrawn", "unreadable"])
async def test_what_changed_between_promise_and_fetch_counts(world: World, what: str) -> None:
    artifact = await register(world, CONTENT)
    node, machine = await held_machine(world)
    delivery = deliver(world, artifact["id"], node)
    if what == "disabled":
        await world.admin.ok("/v1/artifact-sources/asrc_builtin/disable", {"reason": "incident"})
    elif what == "withdrawn":
        await world.boss.ok(tenant(world, "artifacts", artifact["id"], "withdraw"), {"reason": "broken"})
    else:  # an unreadable overlay refuses
        _write(world, [_overlay("pol_x", PLATFORM, None)])
    codes = {"disabled": "artifact_source_disabled", "withdrawn": "artifact_withdrawn", "unreadable": "policy_denied"}
    for answer in (await _resolve(world, artifact), await machine.get(at(delivery))):
        assert answer.json()["code"] == codes[what]
    if what == "disabled":
        await world.admin.ok("/v1/artifact-sources/asrc_builtin/enable", {})
        assert (await machine.get(at(delivery))).status_code == 200


async def test_an_entitlements_overlay_narrows_for_its_app_only(world: World) -> None:
    artifact = await register(world, CONTENT)
    overlay = {"artifact_sources": {"only": ["other"]}}
    path = project(world, "entitlements")
    await world.boss.ok(path, {"app_slug": "echo", "overlay": overlay})
    assert (await _resolve(world, artifact)).status_code == 200
    check_problem(await _resolve(world, artifact, app_slug="echo"), 403, "policy_denied")


async def test_a_host_of_the_platform_is_not_escaped_by_renaming_it(world: World) -> None:
    base = {"kind": "blob", "base_url": "https://8.8.8.8/models"}
    ours = await world.admin.ok("/v1/artifact-sources", base | {"name": "mirror"})
    theirs = await world.boss.ok(
        tenant(world, "artifact-sources"), base | {"name": "innocent", "base_url": "https://8.8.8.8"}
    )
    apart = await world.boss.ok(
        tenant(world, "artifact-sources"), base | {"name": "apart", "base_url": "https://8.8.8.8/modelsX"}
    )
    said = {"version": "1", "path": "w", "sha256": "0" * 64, "size": 1}
    first = await world.boss.ok(tenant(world, "artifacts"), said | {"name": "first", "source_id": theirs["id"]})
    other = await world.boss.ok(tenant(world, "artifacts"), said | {"name": "other", "source_id": apart["id"]})
    assert (await _resolve(world, first)).status_code == 200
    await set_policy(world.admin, "/v1", {"deny": ["mirror"]})
    check_problem(await _resolve(world, first), 403, "policy_denied")
    assert (await _resolve(world, other)).status_code == 200, "another place on the same host"
    await world.admin.call("DELETE", "/v1/policies/house-rules", headers={"If-Match": await _etag(world)})
    assert (await _resolve(world, first)).status_code == 200
    await world.admin.ok(f"/v1/artifact-sources/{ours['id']}/disable", {})
    check_problem(await _resolve(world, first), 409, "artifact_source_disabled")


async def _etag(world: World) -> str:
    return (await world.admin.get("/v1/policies/house-rules")).headers["etag"]


# --- a global deny wins in every world


def _overlay(name: str, place: tuple[str, str], rules: Any) -> dict[str, Any]:
    stored = "{" if rules is None else canonical(rules)  # None: it cannot be parsed
    key = {"id": name, "scope_kind": place[0], "scope_id": place[1], "name": name.replace("_", "-")}
    return key | {"rules": stored, "reason": "", "revision": 1, "updated_by": "t", "created_at": 1, "updated_at": 1}


def _write(world: World, overlays: list[dict[str, Any]]) -> None:
    world.platform.db.write_now(lambda tx: tx.execute(insert(policies), overlays))


def _random_rules(dice: random.Random, names: list[str]) -> Any:
    if dice.random() < 0.05:
        return None
    some = lambda: dice.sample(names, dice.randint(0, len(names)))  # noqa: E731
    kinds = [{}, {"only": some()}, {"deny": some()}, {"only": some(), "deny": some()}, {"only": names}]
    rule = dice.choice(kinds)
    return {"artifact_sources": rule} if rule else {}


@pytest.mark.parametrize("tier", ["platform", "tenant"])
async def test_a_global_deny_wins_whatever_the_other_overlays_say(world: World, tier: str) -> None:
    """400 random worlds: overlays at every level, in any number and order, some unreadable. And without the deny, some
    of the same worlds allow it: the check can fail.
    """
    body = {"name": "models", "kind": "blob", "base_url": "https://8.8.8.8/a"}
    where = {"platform": (world.admin, "/v1"), "tenant": (world.boss, tenant(world))}[tier]
    source_id = (await where[0].ok(f"{where[1]}/artifact-sources", body))["id"]
    name = {"platform": "models", "tenant": "acme.models"}[tier]
    dice = random.Random(7)
    places = [PLATFORM, ("tenant", world.tenant), ("project", world.red), ("entitlement", f"{world.red}/echo")]
    allowed = {True: 0, False: 0}

    def judged(tx: Any, source: Any, overlays: list[dict[str, Any]]) -> bool:
        tx.execute(delete(policies))
        if overlays:
            tx.execute(insert(policies), overlays)
        try:
            resolution.require_source(tx, overlays_for(tx, project_scope(tx, world.red), "echo"), source)
        except PolicyDenied:
            return False
        return True

    def all_worlds(tx: Any) -> None:
        source = tx.execute(select(artifact_sources).where(artifact_sources.c.id == source_id)).one()
        for number in range(200):
            known = [name, "builtin", "models", "acme.models", "other"]
            others = [
                _overlay(f"pol_{n}", dice.choice(places), _random_rules(dice, known)) for n in range(dice.randint(0, 5))
            ]
            deny = _overlay("pol_deny", PLATFORM, {"artifact_sources": {"deny": [name]}})
            assert not judged(tx, source, [*others, deny]), (number, others)
            allowed[judged(tx, source, others)] += 1

    world.platform.db.write_now(all_worlds)
    assert min(allowed.values()) > 20, allowed
