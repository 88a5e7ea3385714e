"""A stream or long poll ends when its caller's right to it ends: woken by the change, not found at the next look.

The looks that would find it anyway are switched off here, so that only a wake-up can end the request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from gpuaas_core.events import stream
from gpuaas_core.kit import wakeups

from core.tests.http.test_bad_input import check_problem
from core.tests.support.fixtures import PASSWORD, Api, MovableClock, Store, World, add_node, add_user, asleep, sign_in
from core.tests.support.served import Served, calling
from core.tests.support.store_rows import rows

LONG_S = 600.0
PATIENCE_S = 5.0  # one second is promised


@pytest.fixture(autouse=True)
def only_wake_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RECHECK_MS", int(LONG_S * 1000))
    monkeypatch.setattr(stream, "PING_S", LONG_S)
    monkeypatch.setattr(wakeups, "SAFETY_S", LONG_S)


async def _followed(world: World, by: Api, path: str, requests: int = 1) -> "asyncio.Task[Any]":
    """A request that sleeps until something happens; the answer is whole once the core has ended it."""
    task = asyncio.create_task(by.get(path, timeout=LONG_S))
    await asleep(world.platform, f"events:{world.tenant}", requests)
    return task


def _stream(project: str) -> str:
    return f"/v1/projects/{project}/events/stream?after=0"


async def _head(world: World) -> int:
    return (await world.boss.get(f"/v1/tenants/{world.tenant}/events?limit=1")).json()["head"]


async def _binding(world: World, who: str) -> str:
    (found,) = rows(world.platform, "select id from role_bindings where principal_id = :who", who=who)
    return f"/v1/tenants/{world.tenant}/role-bindings/{found['id']}/remove"


End = Callable[[World, Api, str], Awaitable[object]]


async def _sign_out(world: World, ann: Api, ann_id: str) -> None:
    await ann.ok("/v1/sign-out")


async def _revoke_session(world: World, ann: Api, ann_id: str) -> None:
    other = await sign_in(world.api, "ann@acme.example")
    found = (await other.get("/v1/whoami/sessions")).json()["items"]
    (first,) = [one["id"] for one in found if not one["current"]]
    await other.ok(f"/v1/whoami/sessions/{first}/revoke")


async def _change_password(world: World, ann: Api, ann_id: str) -> None:
    other = await sign_in(world.api, "ann@acme.example")
    await other.ok("/v1/whoami/password", {"current_password": PASSWORD, "new_password": "another long password"})


async def _disable_user(world: World, ann: Api, ann_id: str) -> None:
    await world.boss.ok(f"/v1/tenants/{world.tenant}/users/{ann_id}/disable")


async def _remove_binding(world: World, ann: Api, ann_id: str) -> None:
    await world.boss.ok(await _binding(world, ann_id))


async def _deny(world: World, ann: Api, ann_id: str) -> None:
    rule = {"permissions": ["ledger.event.read"], "reason": "quiet"}
    await world.boss.ok(f"/v1/tenants/{world.tenant}/deny-rules", rule)


async def _deny_on_the_platform(world: World, ann: Api, ann_id: str) -> None:
    rule = {"permissions": ["ledger.event.read"], "reason": "quiet"}
    await world.admin.ok("/v1/deny-rules", rule)


ENDINGS: dict[str, End] = {
    "sign-out": _sign_out,
    "session revoked": _revoke_session,
    "password changed": _change_password,
    "user disabled": _disable_user,
    "binding removed": _remove_binding,
    "deny rule": _deny,
    "deny rule of the platform": _deny_on_the_platform,
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_persons_stream_and_long_poll_end_with_the_right_to_them(world: World, ending: str) -> None:
    ann, ann_id = await add_user(world, "ann@acme.example", "project_viewer", project=world.red)
    streamed = await _followed(world, ann, _stream(world.red))
    path = f"/v1/projects/{world.red}/events?after={await _head(world)}&wait_s=30"
    polled = await _followed(world, ann, path, requests=2)
    await ENDINGS[ending](world, ann, ann_id)
    await world.deploy()
    async with asyncio.timeout(PATIENCE_S):
        assert "apps.instance" not in (await streamed).text, "an event made after the end was delivered"
        assert (await polled).status_code in (401, 403, 404)


async def _disable_account(world: World, account: str) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{account}/disable")


async def _delete_account(world: World, account: str) -> None:
    await world.boss.ok(f"/v1/projects/{world.red}/service-accounts/{account}/delete")


async def _retire_key(world: World, account: str) -> None:
    keys = f"/v1/projects/{world.red}/service-accounts/{account}/keys"
    (key,) = (await world.boss.get(keys)).json()["items"]
    await world.boss.ok(f"{keys}/{key['id']}/retire")


async def _unbind(world: World, account: str) -> None:
    await world.boss.ok(await _binding(world, account))


@pytest.mark.parametrize("end", [_disable_account, _delete_account, _retire_key, _unbind])
async def test_an_accounts_stream_and_its_poll_for_work_end_with_its_right(
    world: World, end: Callable[[World, str], Awaitable[None]]
) -> None:
    streamed = await _followed(world, world.second, _stream(world.red))
    claim = {"app_slug": "echo", "holder": "second", "wait_s": 20}
    path = f"/v1/projects/{world.red}/operations/claim"
    polled = asyncio.create_task(world.second.post(path, claim, timeout=LONG_S))
    await asleep(world.platform, f"work:{world.red}")
    await end(world, world.second_id)
    accepted = await world.deploy()
    async with asyncio.timeout(PATIENCE_S):
        assert "apps.instance" not in (await streamed).text
        assert (await polled).status_code in (401, 403, 404)
    assert (await world.claim())["operation"]["id"] == accepted["operation"]["id"], "it was given to the ended account"


@pytest.mark.parametrize("ending", ["delegation revoked", "lender disabled", "lender unbound"])
async def test_a_stream_through_a_delegation_ends_with_it(world: World, ending: str) -> None:
    ben, ben_id = await add_user(world, "ben@acme.example", "tenant_admin", by=world.admin)
    (account,) = (await world.boss.get(f"/v1/projects/{world.blue}/service-accounts")).json()["items"]
    keys = ["tenancy.project.read", "ledger.event.read"]
    lent = {"grantee_id": account["id"], "permissions": keys, "reason": "watch", "expires_in_s": 3600}
    made = await ben.ok(f"/v1/projects/{world.red}/delegations", lent)
    streamed = await _followed(world, world.blue_controller, _stream(world.red))
    if ending == "delegation revoked":
        await world.boss.ok(f"/v1/projects/{world.red}/delegations/{made['id']}/revoke")
    elif ending == "lender disabled":
        await _disable_user(world, ben, ben_id)
    else:
        await world.boss.ok(await _binding(world, ben_id))
    await world.deploy()
    async with asyncio.timeout(PATIENCE_S):
        assert "apps.instance" not in (await streamed).text


async def test_a_stream_through_a_break_glass_ends_when_it_is_closed(world: World) -> None:
    body = {"tenant_id": world.tenant, "mode": "look", "reason": "incident", "ticket": "I-1", "minutes": 30}
    made = await world.admin.ok("/v1/platform/break-glass", body)
    streamed = await _followed(world, world.admin, _stream(world.red))
    await world.admin.ok(f"/v1/platform/break-glass/{made['id']}/close")
    await world.deploy()
    async with asyncio.timeout(PATIENCE_S):
        assert "apps.instance" not in (await streamed).text


async def test_a_machines_long_poll_ends_when_the_machine_is_retired(world: World) -> None:
    node, machine, _ = await add_node(world, "leaver")
    body = {"applied_generation": 1, "acknowledged_generation": 1, "machine_id": "leaver", "wait_s": 20}
    polled = asyncio.create_task(machine.post(f"/v1/nodes/{node}/poll", body, timeout=LONG_S))
    await asleep(world.platform, f"node:{node}")
    await world.boss.ok(f"/v1/nodes/{node}/drain")
    await asleep(world.platform, f"node:{node}")
    await world.boss.ok(f"/v1/nodes/{node}/retire")
    async with asyncio.timeout(PATIENCE_S):
        check_problem(await polled, 401, "unauthenticated")


async def test_a_stream_ends_when_its_session_runs_out(
    world: World, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only end without a wake-up: the clock brings it."""
    monkeypatch.setattr(wakeups, "SAFETY_S", 0.05)
    monkeypatch.setattr(stream, "RECHECK_MS", 10**15)
    ann, _ = await add_user(world, "ann@acme.example", "project_viewer", project=world.red)
    streamed = await _followed(world, ann, _stream(world.red))
    clock.forward(13 * 3600)
    async with asyncio.timeout(PATIENCE_S):
        assert (await streamed).status_code == 200


async def test_other_readers_go_on(world: World) -> None:
    ann, ann_id = await add_user(world, "ann@acme.example", "project_viewer", project=world.red)
    streamed = await _followed(world, world.viewer, _stream(world.red))
    await _disable_user(world, ann, ann_id)
    await asleep(world.platform, f"events:{world.tenant}")
    assert not streamed.done()
    await world.viewer.ok("/v1/sign-out")
    async with asyncio.timeout(PATIENCE_S):
        assert (await streamed).status_code == 200


async def test_nothing_made_after_the_sign_out_reaches_a_stream_of_a_served_core(served: Served, store: Store) -> None:
    async with calling(served, store.world) as world:
        ann, _ = await add_user(world, "ann@acme.example", "project_viewer", project=world.red)
        path = f"/v1/projects/{world.red}/events/stream?after=0"
        headers = {"Authorization": f"Bearer {ann.token}"}
        async with ann.http.stream("GET", path, headers=headers, timeout=60) as answer:
            pieces = answer.aiter_text()
            await anext(pieces)
            await ann.ok("/v1/sign-out")
            await world.deploy()
            async with asyncio.timeout(PATIENCE_S):
                rest = "".join([piece async for piece in pieces])
        assert "apps.instance" not in rest
