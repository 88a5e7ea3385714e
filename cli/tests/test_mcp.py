"""What an agent is offered and what it is not: secrets stay out, plans are applied once, errors say what can be done.

The journey over real pipes against a real core is core/tests/journeys/test_mcp_journey.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gpuaas_cli.agents import registry
from gpuaas_cli.agents.plans import LIFE_S, Plans
from gpuaas_cli.agents.server import answer
from gpuaas_cli.agents.tools import Tools
from gpuaas_cli.options import Common
from gpuaas_sdk import Calls
from gpuaas_sdk.client.call import call

from cli.tests.support import route_coverage
from cli.tests.support.cli_stack import Scene
from sdk.tests.support.fake_platform import Cut, problem

DEPLOY = {"name": "train", "app_slug": "slurm", "placement_intent": {"controller": ["alloc_1"]}}
# Looked for in the contract, not in the SDK's models: another way to the same end than registry.SECRET.
SECRET_FIELDS = re.compile(
    r"pass(word|phrase)|token$|secret($|_access)|private|sealed|assertion|^certificate$|verifier"
)
NO_SECRETS = {"token_type", "private_addresses"}


def schemas_of(part: Any, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The names of all fields in a piece of the contract."""
    if isinstance(part, list):
        for one in part:
            yield from schemas_of(one, seen)
    if not isinstance(part, dict):
        return
    if (name := str(part.get("$ref", "")).rsplit("/", 1)[-1]) and name not in seen:
        yield from schemas_of(route_coverage.CONTRACT["components"]["schemas"][name], seen | {name})
    for key, value in part.items():
        if key == "properties":
            yield from value
        yield from schemas_of(value, seen)


def fields_of(method: str, path: str) -> set[str]:
    operation = route_coverage.CONTRACT["paths"][path][method.lower()]
    good = {status: response for status, response in operation["responses"].items() if status < "300"}
    return {*schemas_of(operation.get("requestBody", {})), *schemas_of(good)} - NO_SECRETS


def test_no_operation_of_an_agent_takes_or_gives_a_secret() -> None:
    offered = {name: route_coverage.route_of(registry._sample(one.call)) for name, one in registry.operations().items()}
    secret = {name: [f for f in fields_of(*route) if SECRET_FIELDS.search(f)] for name, route in offered.items()}
    assert not {name: found for name, found in secret.items() if found}


def test_everything_else_is_left_out_for_a_reason() -> None:
    known = {name: one for name, one in inspect.getmembers(Calls) if isinstance(one, call)}
    left_out = {name: registry.why_not(name, one) for name, one in known.items() if name not in registry.operations()}
    assert all(left_out.values())
    for name in ("sign_in", "issue_secret", "deliver_secret", "redeem_credential", "import_credential", "invite"):
        assert name in left_out
    assert set(registry.NOT_FOR_AGENTS) <= set(left_out), "they are gone: take them out"


def test_every_route_that_can_only_check_is_asked_to_check() -> None:
    can = {
        ("POST", path)
        for path, known in route_coverage.CONTRACT["paths"].items()
        if "validate_only" in set(schemas_of(known.get("post", {}).get("requestBody", {})))
    }
    asked = {route_coverage.route_of(registry._sample(getattr(Calls, name))) for name in registry.PLANNERS.values()}
    planned = {route_coverage.route_of(registry._sample(getattr(Calls, name))) for name in registry.PLANNERS}
    assert asked == planned == can, "write it into registry.PLANNERS"


# --- tools


def tools(**more: Any) -> Tools:
    return Tools(Common(), **{"allow_changes": True, **more})


def call_tool(served: Tools, tool: str, /, **arguments: Any) -> dict[str, Any]:
    return answer(served, tool, arguments).structured_content


@pytest.mark.usefixtures("scene")
def test_an_agent_finds_describes_and_learns_what_it_can_ask() -> None:
    found = call_tool(tools(), "find", what="list_instances")
    assert [one["name"] for one in found["answer"]["items"]] == ["train"]
    one = call_tool(tools(), "describe", what="get_instance", arguments={"instance_id": "inst_1"})
    assert one["answer"]["health"]["status"] == "healthy"
    asks = call_tool(tools(), "operations", name="deploy")["answer"]["arguments"]
    assert {"name", "app_slug", "placement_intent"} < set(asks["required"])
    assert call_tool(tools(), "operations", about="decommission")["answer"]
    assert call_tool(tools(), "explain", code="allocation_in_use")["answer"]["exit_code"] == 6


def test_a_plan_changes_nothing_and_says_what_would_happen(scene: Scene) -> None:
    planned = call_tool(tools(), "plan", operation="deploy", arguments=DEPLOY)["answer"]
    assert planned["checked"] == "by the platform"
    assert planned["effects"]["hosts"][0]["node_name"] == "node-a"
    assert planned["sends"]["body"]["name"] == "train"
    assert [call.body["validate_only"] for call in scene.platform.seen("POST", ".*")] == [True]
    unchecked = call_tool(tools(), "plan", operation="stop_instance", arguments={"instance_id": "inst_1"})["answer"]
    assert unchecked["sends"]["path"] == "/v1/projects/prj_1/instances/inst_1/stop"
    assert unchecked["checked"].startswith("not checked by the platform")
    assert scene.platform.seen("POST", ".*/stop") == []


def test_a_plan_applied_twice_has_one_effect(scene: Scene) -> None:
    served = tools()
    plan = call_tool(served, "plan", operation="deploy", arguments=DEPLOY)["answer"]["plan_id"]
    first, again = call_tool(served, "apply", plan_id=plan), call_tool(served, "apply", plan_id=plan)
    assert first["answer"]["applied"] == "now"
    assert again["answer"]["applied"].startswith("before")
    assert again["answer"]["answer"] == first["answer"]["answer"]
    assert len([one for one in scene.platform.seen("POST", ".*/instances") if not one.body["validate_only"]]) == 1


def test_a_lost_answer_is_asked_for_again_under_the_same_key(scene: Scene) -> None:
    served, keys = tools(), list[str]()

    def lost(one: Any) -> Any:
        keys.append(one.key)
        if len(keys) == 1:
            raise Cut
        return 202, {"instance": scene.instance, "operation": scene.operation}

    scene.platform.on("POST", "/v1/projects/prj_1/instances/inst_1/stop", lost)
    plan = call_tool(served, "plan", operation="stop_instance", arguments={"instance_id": "inst_1"})["answer"][
        "plan_id"
    ]
    assert call_tool(served, "apply", plan_id=plan)["code"] == "connection_failed"
    assert call_tool(served, "apply", plan_id=plan)["answer"]["applied"] == "now"
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_what_was_refused_is_planned_again_not_repeated(scene: Scene) -> None:
    served = tools()
    scene.platform.on("POST", "/v1/projects/prj_1/instances/inst_1/stop", lambda _: problem(409, "wrong_state"))
    plan = call_tool(served, "plan", operation="stop_instance", arguments={"instance_id": "inst_1"})["answer"][
        "plan_id"
    ]
    refused = call_tool(served, "apply", plan_id=plan)
    assert (refused["code"], refused["what_you_can_do"], refused["correlation_id"]) == (
        "wrong_state",
        "Do otherwise.",
        "cor-server",
    )
    assert "Create a new plan" in call_tool(served, "apply", plan_id=plan)["what_you_can_do"]
    assert len(scene.platform.seen("POST", ".*/stop")) == 1


@pytest.mark.usefixtures("scene")
def test_a_plan_lives_ten_minutes_and_in_one_server() -> None:
    clock = [0.0]
    served = tools(plans=Plans(lambda: clock[0]))
    plan = call_tool(served, "plan", operation="stop_instance", arguments={"instance_id": "inst_1"})["answer"][
        "plan_id"
    ]
    assert "does not exist here" in call_tool(tools(), "apply", plan_id=plan)["error"]
    clock[0] = LIFE_S
    assert "does not exist here" in call_tool(served, "apply", plan_id=plan)["error"]


def test_a_server_that_only_looks_does_not_offer_to_change_and_refuses_it(scene: Scene) -> None:
    served = tools(allow_changes=False)
    assert "apply" not in [tool.name for tool in served.listed()]
    planned = call_tool(served, "plan", operation="stop_instance", arguments={"instance_id": "inst_1"})["answer"]
    assert "--allow-changes" in planned["note"]
    assert "--allow-changes" in call_tool(served, "apply", plan_id=planned["plan_id"])["what_you_can_do"]
    assert scene.platform.seen("POST", ".*") == []


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("nope", {}, "There is no tool nope."),
        ("find", {"what": "deploy"}, "There is no operation deploy here."),
        ("plan", {"operation": "issue_secret"}, "There is no operation issue_secret here."),
        ("describe", {}, "describe needs what."),
        ("find", {"what": "list_instances", "arguments": {"colour": "red"}}, "does not know colour"),
        ("describe", {"what": "get_instance", "arguments": {"instance_id": ""}}, "an id is empty"),
        ("explain", {"code": "nope"}, "no error code nope"),
    ],
)
def test_what_is_not_understood_is_said_with_a_way_out(tool: str, arguments: dict[str, Any], words: str) -> None:
    error = call_tool(tools(), tool, **arguments)
    assert words in error["error"]
    assert error["what_you_can_do"]
    assert error["correlation_id"]


def test_watching_gives_the_steps_and_goes_on_where_it_was(scene: Scene) -> None:
    scene.plays("Installing", "Starting")
    scene.operation = {**scene.operation, "status": "succeeded"}
    seen = call_tool(tools(), "watch", operation_id="op_1", seconds=0)["answer"]
    assert seen["ended"]
    assert [step.get("message") for step in seen["steps"]] == ["Installing", "Starting", None]


def test_an_expired_login_is_told_to_the_person(scene: Scene) -> None:
    scene.platform.on("GET", "/v1/projects/prj_1/instances", lambda _: problem(401, "token_expired"))
    assert "gpuaas login" in call_tool(tools(), "find", what="list_instances")["what_you_can_do"]
