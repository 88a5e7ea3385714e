"""Killed at every point of a mutation, started again, asked again: exactly one effect in every cell.

The points are found, not listed: after every statement of the transaction, before its commit and after it.
test_crash_syscalls.py does the same at every system call that writes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import OKPKey

from core.tests.support import kill_points, postgres
from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import Api, Store, World
from core.tests.support.kill_points import Prepared, Request

pytestmark = pytest.mark.slow

Asked = tuple[Callable[[World], Api], str, dict[str, Any]]


async def _instance(world: World) -> Asked:
    return lambda w: w.boss, f"/v1/projects/{world.red}/instances", world.deploy_body(world.allocations[0])


async def _account(world: World) -> Asked:
    body = {"name": "robot", "public_jwk": OKPKey.generate_key("Ed25519").as_dict(private=False)}
    return lambda w: w.boss, f"/v1/projects/{world.red}/service-accounts", body


async def _completion(world: World) -> Asked:
    await world.deploy()
    claim = await world.claim()
    members = [{"member_id": one["id"], "state": "ready"} for one in claim["instance"]["members"]]
    body = {"claim_epoch": claim["claim_epoch"], "members": members}
    return lambda w: w.controller, world.operation(claim["operation"]["id"], "complete"), body


async def _publication(world: World) -> Asked:
    manifest = MANIFEST | {"version": "1.1.0"}
    await world.admin.ok("/v1/apps/echo/versions", {"version": "1.1.0", "manifest": manifest})
    return lambda w: w.admin, "/v1/apps/echo/versions/1.1.0/publish", {}


async def _release(world: World) -> Asked:
    return lambda w: w.boss, f"/v1/projects/{world.red}/allocations/{world.allocations[1]}/release", {}


REQUESTS = [
    Request("create instance", _instance),
    Request("create service account", _account),
    Request("complete operation", _completion),
    Request("publish version", _publication),
    Request("release allocation", _release),
]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: one.name.replace(" ", "-"))
def test_killed_at_every_statement_and_asked_again_there_is_exactly_one_effect(
    request_: Request, store: Store, tmp_path: Path
) -> None:
    (tmp_path / "prepared").mkdir()
    what, place = kill_points.prepared(store, tmp_path / "prepared", request_), tmp_path / "cell"
    before = kill_points.row_counts(what.fresh(place))
    names = kill_points.points(what, place)
    after = kill_points.row_counts(place if not postgres.CHOSEN else what.folder)
    one_of_each(before, after)
    kept = [n for n, name in enumerate(names) if name == "after the commit"]
    assert len(names) > 8, names
    assert kept == [len(names) - 1], "the request is one transaction, and its commit is the last that happens"
    for number, name in enumerate(names):
        here = what.fresh(place)
        life = kill_points.live(what, here, kill_points.killing_at(number))
        assert life.killed, name
        assert life.answer is None, f"{name}: it was acknowledged before it was kept"
        asked_again(what, here, name, after, kept=number in kept)
    assert kill_points.violations(what, here) == []
    print(f"{request_.name}: {len(names)} cells")


def one_of_each(before: dict[str, int], after: dict[str, int]) -> None:
    """The life without a crash: the numbers that all others are held against."""
    assert after["audit"] - before["audit"] == 1
    assert after["seen_requests"] - before["seen_requests"] == 1
    assert after["events"] - before["events"] >= 1


def asked_again(what: Prepared, here: Path, name: str, after: dict[str, int], *, kept: bool) -> None:
    again = kill_points.live(what, here)
    assert again.answer is not None, name
    assert again.answer["status"] < 300, (name, again.answer)
    assert again.answer["replayed"] == kept, (
        f"{name}: the effect of the killed request was {'lost' if kept else 'kept'}"
    )
    assert kill_points.row_counts(here) == after, f"{name}: not exactly one effect"
