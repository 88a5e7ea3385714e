"""Apps, the lives of their versions, what a manifest may declare, and what a project may deploy."""

import copy
import json
from typing import Any

import pytest
from gpuaas_core.catalog.manifest import ManifestInvalid, check_manifest
from gpuaas_core.catalog.states import VERSION
from gpuaas_core.kit.lifecycle import WrongMoment

from core.tests.support.echo_app import MANIFEST
from core.tests.support.fixtures import World
from core.tests.support.store_rows import rows

STATES = ("draft", "published", "deprecated", "withdrawn")
TO = {"publish": "published", "deprecate": "deprecated", "withdraw": "withdrawn"}
WAY = {"draft": [], "published": ["publish"], "deprecated": ["publish", "deprecate"], "withdrawn": ["withdraw"]}
ECHO = "/v1/apps/echo/versions"


async def _add(world: World, version: str, *actions: str, **more: Any) -> dict[str, Any]:
    manifest = MANIFEST | {"version": version} | more
    made = await world.admin.ok(ECHO, {"version": version, "manifest": manifest})
    for action in actions:
        made = await world.admin.ok(f"{ECHO}/{version}/{action}")
    return made


async def _entry(world: World) -> dict[str, Any]:
    (entry,) = (await world.boss.get(f"/v1/projects/{world.red}/catalog")).json()["items"]
    return entry


async def _plan(world: World, version: str | None = None) -> Any:
    more = {"version": version} if version else {}
    body = world.deploy_body(world.allocations[0], validate_only=True, **more)
    return await world.boss.post(f"/v1/projects/{world.red}/instances", body)


def _told(world: World, kind: str) -> list[dict[str, Any]]:
    return rows(world.platform, "select subject, data from events where type = :kind order by sequence", kind=kind)


@pytest.mark.parametrize("state", STATES)
async def test_every_action_on_a_version_does_what_its_table_says(world: World, state: str) -> None:
    for number, action in enumerate(TO):
        version = f"2.{number}.0"
        made = await _add(world, version, *WAY[state])
        assert (made["state"], made["published"]) == (state, state == "published")
        assert set(made["available_actions"]) == set(VERSION.moves[state])
        answer = await world.admin.post(f"{ECHO}/{version}/{action}", {} if action == "publish" else {"reason": "So."})
        after = (await world.viewer.get(f"{ECHO}/{version}")).json()
        if action in VERSION.moves[state]:
            assert answer.json()["state"] == after["state"] == TO[action]
        else:
            assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
            assert after["state"] == state
            with pytest.raises(WrongMoment):
                VERSION.after(state, action)


async def test_a_deprecated_version_still_deploys_with_a_warning(world: World) -> None:
    await world.admin.ok(f"{ECHO}/1.0.0/deprecate", {"reason": "2.0.0 comes on Monday."})
    entry = await _entry(world)
    assert (entry["version"], entry["state"], entry["deployable"]) == ("1.0.0", "deprecated", True)
    plan = (await _plan(world)).json()["plan"]
    assert plan["warnings"] == entry["warnings"] == ["echo 1.0.0 is deprecated: 2.0.0 comes on Monday."]
    assert (await world.deploy())["instance"]["version"] == "1.0.0"


async def test_a_published_version_goes_before_a_deprecated_one_and_warns_of_nothing(world: World) -> None:
    await _add(world, "2.0.0", "publish")
    await world.admin.ok(f"{ECHO}/2.0.0/deprecate")
    plan = (await _plan(world)).json()["plan"]
    assert (plan["version"], plan["warnings"]) == ("1.0.0", [])
    named = (await _plan(world, "2.0.0")).json()["plan"]
    assert named["warnings"] == ["echo 2.0.0 is deprecated."]


async def test_publishing_again_does_not_make_an_old_version_the_default(world: World) -> None:
    world.platform.clock.forward(60)  # type: ignore[attr-defined] - the tests' own clock
    await _add(world, "2.0.0", "publish")
    await world.admin.ok(f"{ECHO}/1.0.0/deprecate")
    await world.admin.ok(f"{ECHO}/1.0.0/publish")
    assert (await _plan(world)).json()["plan"]["version"] == "2.0.0"


async def test_a_withdrawn_version_deploys_no_more_and_what_runs_stays(world: World) -> None:
    running = await world.running()
    await world.admin.ok(f"{ECHO}/1.0.0/withdraw", {"reason": "It loses messages."})
    refused = await _plan(world, "1.0.0")
    assert (refused.status_code, refused.json()["code"]) == (422, "version_withdrawn")
    assert "It loses messages" in refused.json()["detail"]
    assert (await _plan(world)).json()["code"] == "version_not_published"
    entry = await _entry(world)
    assert (entry["deployable"], entry["version"], entry["reason"]) == (False, None, "no version is published yet")
    assert (await world.instance(running["id"]))["state"] == "running"
    await world.decommission(running["id"])
    assert (await world.torn_down(await world.claim()))["status"] == "succeeded"


async def test_each_move_of_a_version_is_an_event_once_with_its_reason(world: World) -> None:
    await _add(world, "2.0.0", "publish", "publish")
    await world.admin.ok(f"{ECHO}/2.0.0/deprecate", {"reason": "old"})
    await world.admin.ok(f"{ECHO}/2.0.0/withdraw", {"reason": "older"})
    for state, reason in (("published", ""), ("deprecated", "old"), ("withdrawn", "older")):
        (event,) = [one for one in _told(world, f"catalog.version.{state}") if one["subject"] == "echo/2.0.0"]
        data = event["data"] if isinstance(event["data"], dict) else json.loads(event["data"])  # SQLite has a text
        assert data["reason"] == reason


def _manifest(**more: Any) -> dict[str, Any]:
    return copy.deepcopy(MANIFEST) | more


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"operating_modes": ["tenant_dedicated", "platform_managed"], "control_plane_scopes": ["project", "platform"]},
        {"artifact_sources": ["registry.internal", "models-eu"]},
        {"operations": {"deploy": {"deadline_s": 3600, "expected_phase_s": 300}, "upgrade": {"deadline_s": 60}}},
        {"actions": [{"key": "expand", "title": "Expand", "target": "instance"}]},
    ],
    ids=lambda more: next(iter(more), "nothing"),
)
def test_a_manifest_may_declare(more: dict[str, Any]) -> None:
    check_manifest(_manifest(**more), app_slug="echo", version="1.0.0")


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"operating_modes": ["as_you_like"]}, "/operating_modes/0"),
        ({"operating_modes": []}, "/operating_modes"),
        ({"operating_modes": ["platform_managed"]}, "/control_plane_scopes"),
        ({"control_plane_scopes": ["galaxy"]}, "/control_plane_scopes/0"),
        ({"tenant_boundary_modes": ["shared_service"]}, "/tenant_boundary_modes"),
        ({"artifact_sources": ["https://evil.example/"]}, "/artifact_sources/0"),
        ({"artifact_sources": ["Registry"]}, "/artifact_sources/0"),
        ({"operations": {"deploy": {}}}, "/operations/deploy"),
        ({"operations": {"deploy": {"deadline_s": 0}}}, "/operations/deploy/deadline_s"),
        ({"operations": {"deploy": {"deadline_s": 5, "expected_phase_s": 6}}}, "/operations/deploy"),
        ({"operations": {"deploy": {"patience": 5}}}, "/operations/deploy"),
    ],
    ids=str,
)
def test_a_manifest_may_not_declare(more: dict[str, Any], pointer: str) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        check_manifest(_manifest(**more), app_slug="echo", version="1.0.0")
    assert pointer in [error["pointer"] for error in refused.value.errors]
