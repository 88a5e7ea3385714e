"""Every event that is emitted is one the AsyncAPI document describes, with the identifiers an incident needs."""

from typing import Any

import pytest
from gpuaas_core.contract_docs.contracts import asyncapi
from gpuaas_core.events.event_log import IDENTIFIERS, TYPES, after
from gpuaas_core.events.shapes import FAMILIES, family
from joserfc.jwk import OKPKey
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from core.tests.support.fixtures import World, add_user, apply_trust

DOCUMENT = asyncapi()
REGISTRY = Registry().with_resource("urn:asyncapi", Resource(DOCUMENT, DRAFT202012))


def complaints(event: dict[str, Any]) -> list[str]:
    where = f"urn:asyncapi#/components/messages/{event['type']}/payload"
    found = Draft202012Validator({"$ref": where}, registry=REGISTRY).iter_errors(event)
    return [f"{event['type']}: {one.json_path} {one.message}" for one in found]


async def everything(world: World) -> list[dict[str, Any]]:
    mine = (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1000")).json()["items"]
    platforms = world.platform.db.read_now(lambda tx: after(tx, "platform", 0, project_id=None, limit=1000))
    return mine + platforms


async def live(world: World) -> None:
    """A deploy that runs and is torn down, one that is released, canceled, retried; people, keys, rules, machines."""
    running = await world.running()
    await world.decommission(running["id"])
    claim = await world.claim()
    await world.progress(claim, 1)
    await world.torn_down(claim)
    again = await world.deploy(world.allocations[1], "second")
    path = world.operation(again["operation"]["id"])
    claim = await world.claim()
    await world.controller.ok(f"{path}/return-claim", {"claim_epoch": claim["claim_epoch"], "reason": "later"})
    await world.fail(await world.claim())
    retried = await world.boss.ok(f"{path}/retry")
    await world.claim()
    await world.boss.ok(world.operation(retried["operation"]["id"], "cancel"))
    third = await world.deploy(world.allocations[0], "third")
    await world.boss.ok(world.operation(third["operation"]["id"], "cancel"))
    await _people(world)
    await _machines(world)


async def _people(world: World) -> None:
    tenant = f"/v1/tenants/{world.tenant}"
    _, person = await add_user(world, "person@acme.example", None)
    for verb in ("disable", "enable"):
        await world.boss.ok(f"{tenant}/users/{person}/{verb}")
    person = {"email": "new@acme.example", "name": "New", "role": "tenant_admin"}
    invited = await world.boss.ok(f"{tenant}/invitations", person)
    await world.boss.ok(f"{tenant}/invitations/{invited['id']}/revoke")
    bindings = (await world.boss.get(f"{tenant}/role-bindings")).json()["items"]
    viewing = next(one for one in bindings if one["role"] == "project_viewer")
    await world.boss.ok(f"{tenant}/role-bindings/{viewing['id']}/remove")
    rule = await world.boss.ok(f"{tenant}/deny-rules", {"permissions": ["scheduler.queue.submit"], "reason": "a test"})
    await world.boss.ok(f"{tenant}/deny-rules/{rule['id']}/remove")
    await world.boss.ok(f"{tenant}/roles", {"name": "night-shift", "permissions": ["tenancy.project.read"]})
    await world.boss.ok(f"{tenant}/roles/night-shift/delete")
    account = f"/v1/projects/{world.red}/service-accounts/{world.second_id}"
    key = OKPKey.generate_key("Ed25519").as_dict(private=False)
    added = await world.boss.ok(f"{account}/keys", {"public_jwk": key})
    await world.boss.ok(f"{account}/keys/{added['id']}/retire")
    for verb in ("disable", "enable", "delete"):
        await world.boss.ok(f"{account}/{verb}")
    await world.boss.ok(f"/v1/projects/{world.blue}/entitlements/echo/disable")


async def _machines(world: World) -> None:
    await world.boss.ok(f"/v1/projects/{world.blue}/allocations/{world.blue_allocation}/release")
    await apply_trust(world.nodes[-1], world.machine)


async def test_every_event_of_a_long_day_fits_the_contract(world: World) -> None:
    """As a reader gets it. What every other test emits is checked where it is emitted (fitting.py)."""
    await live(world)
    found = await everything(world)
    assert [said for event in found for said in complaints(event)] == []
    assert len({event["type"] for event in found}) > 30


def test_every_type_belongs_to_a_family_and_every_family_to_a_type() -> None:
    assert {family(type_) for type_ in TYPES} == set(FAMILIES)


async def test_every_event_of_an_app_names_all_that_an_incident_needs(world: World) -> None:
    await live(world)
    of_apps = [event for event in await everything(world) if event["type"].startswith("apps.")]
    assert len(of_apps) > 20
    for event in of_apps:
        assert None not in [event["data"][name] for name in IDENTIFIERS], event
    entitled = [event for event in await everything(world) if event["type"].startswith("catalog.entitlement.")]
    assert {event["data"]["app_slug"] for event in entitled} == {"echo"}
    assert None not in [event["data"]["project_id"] for event in entitled]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"state": 7}, "is not of type 'string'"),
        ({"org_id": None}, "is not of type 'string'"),
        ({"app_instance_id": ...}, "is a required property"),
    ],
)
async def test_an_event_that_does_not_fit_would_be_found(world: World, change: Any, complaint: str) -> None:
    await world.deploy()
    event = next(one for one in await everything(world) if one["type"] == "apps.instance.requested")
    event["data"] |= change
    event["data"] = {name: value for name, value in event["data"].items() if value is not ...}
    assert any(complaint in said for said in complaints(event))
