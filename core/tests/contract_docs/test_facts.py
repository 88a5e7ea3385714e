"""What clients are generated from is complete: no action, state or event is known to the core and not to them."""

from typing import Any

import pytest
from fastapi.routing import APIRoute
from gpuaas_core.authz.permissions import PERMISSIONS
from gpuaas_core.capacity.states import DECISIONS
from gpuaas_core.contract_docs import facts
from gpuaas_core.contract_docs.adapter_detail import AdapterDetail
from gpuaas_core.contract_docs.contracts import _routes_only
from gpuaas_core.events.event_log import TYPES
from gpuaas_core.instances.states import KINDS, OF_INSTANCE, OF_MEMBER
from gpuaas_core.operations.states import OPERATION

LIFE_OF = {
    kind: kind for kind in ("instance", "member", "operation", "node", "allocation", "credential", "app_version")
}
# Read once, or read for a program: no event says that they changed.
NOT_FOLLOWED = ("public", "apps.operation.work", "apps.task.ask", "capacity.node.report", "artifacts.delivery.fetch")


@pytest.fixture(scope="module")
def app() -> Any:
    return _routes_only()


def test_every_action_that_a_resource_shows_has_a_permission_and_a_route(app: Any) -> None:
    known = facts.actions(app)
    shown = {kind.key or name for name, kind in KINDS.items() if kind.target == OF_INSTANCE and kind.ask}
    shown |= {"retry", "add_{component}"}
    assert set(known["instance"]) == shown
    of_member = {kind.key for kind in KINDS.values() if kind.target == OF_MEMBER and kind.key != "add"}
    assert set(known["member"]) == of_member | {"retry", "tombstone"}
    assert set(known["operation"]) == {"retry", "cancel", "release_claim", "abandon"}
    assert set(known["node"]) == set(DECISIONS)
    for of_kind in known.values():
        assert all(action["permission"] in PERMISSIONS for action in of_kind.values())


def test_an_action_is_valid_in_states_of_its_own_lifecycle_and_in_at_least_one(app: Any) -> None:
    lives = facts.lifecycles()
    for kind, of_kind in facts.actions(app).items():
        for name, action in of_kind.items():
            assert action["states"], f"{kind} {name} is possible in no state"
            assert set(action["states"]) <= set(lives[LIFE_OF[kind]]["transitions"])


def test_the_claim_is_released_by_people_on_their_own_route(app: Any) -> None:
    assert facts.actions(app)["operation"]["release_claim"]["permission"] == "apps.operation.release"


def test_live_and_terminal_states_are_all_states_of_a_lifecycle() -> None:
    lives = facts.lifecycles()
    for life in lives.values():
        assert sorted(life["live"] + life["terminal"]) == sorted(life["transitions"])
        assert life["initial"] in life["transitions"]
    assert lives["operation"]["live"] == OPERATION.live_states


def test_every_event_type_touches_a_kind_of_resource_that_can_be_read(app: Any) -> None:
    document: Any = facts.events(app)
    assert set(document["events"]) == set(TYPES)
    for type_, kinds in document["events"].items():
        assert len(kinds) > 1, f"{type_}: say in contract_docs/facts.py what it makes out of date"
        assert all(document["reads"][kind] for kind in kinds), f"{type_} touches something that is read nowhere"


def test_every_route_that_people_read_belongs_to_exactly_one_kind(app: Any) -> None:
    reads: Any = facts.events(app)["reads"]
    kinds = [path for paths in reads.values() for path in paths]
    assert len(kinds) == len(set(kinds))
    for route in app.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            followed = (route.openapi_extra or {})["x-permission"] not in NOT_FOLLOWED
            if followed and not route.path.endswith(("/stream", "/verify", "/trust")):
                assert route.path in kinds, f"{route.path}: say in contract_docs/facts.py which kind it reads"


def test_unknown_parts_of_adapter_detail_are_kept() -> None:
    detail = {"step": "start", "mine": {"deep": [1]}, "checks": [{"check": "a", "ok": True, "more": 1}]}
    read = AdapterDetail.model_validate(detail).model_dump(exclude_unset=True)
    assert read == detail
