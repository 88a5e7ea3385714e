"""Overlays as a pure function: they only narrow, in any order; what cannot be read refuses; a deny stays a deny."""

import itertools
import os
import time
from collections import Counter
from typing import Any

import pytest
from gpuaas_core.authz.evaluate import PLATFORM
from gpuaas_core.policy.evaluate import FIELDS, Overlay, allowed, judge, judge_mode, readable
from gpuaas_core.policy.modes import decide_modes
from hypothesis import given, settings
from hypothesis import strategies as st

from core.tests.support import policy_worlds
from core.tests.support.policy_worlds import BROKEN, BROKEN_ENABLES, ENTITLED, PLACES, RED, TENANT, PolicyWorld

WORLDS = int(os.environ.get("GPUAAS_WORLDS", "5000"))
MANAGED = {"platform_managed": ["echo"]}
BOTH = {
    "app_slug": "echo",
    "runtime_backend": "bare_metal",
    "operating_modes": ["platform_managed", "tenant_dedicated"],
    "control_plane_scopes": ["project", "tenant", "platform"],
    "tenant_boundary_modes": ["tenant_isolated", "shared_service"],
}

names = st.lists(st.sampled_from(policy_worlds.OPEN[:-1]), max_size=4, unique=True)  # the last is never named
rule = st.fixed_dictionaries({}, optional={"only": names, "deny": names}).filter(bool)
rules = st.dictionaries(st.sampled_from(sorted(FIELDS)), rule, max_size=3) | st.sampled_from(BROKEN)
overlays = st.builds(Overlay, st.sampled_from(["a", "b", "c"]), st.sampled_from(PLACES), rules)


@settings(max_examples=400, deadline=None)
@given(st.lists(overlays, max_size=5), overlays, st.sampled_from(sorted(FIELDS)))
def test_an_overlay_only_narrows(some: list[Overlay], more: Overlay, field: str) -> None:
    policy_worlds.check(
        PolicyWorld(tuple(some), more, field, tuple(policy_worlds.values_of(field)), BOTH, {"operating_mode": None})
    )


def test_an_overlay_only_narrows_in_many_worlds() -> None:
    """GPUAAS_WORLDS sets how many; the generator is worlds.py."""
    started = time.monotonic()
    for seed in range(WORLDS):
        policy_worlds.check(policy_worlds.world(seed))
    print(f"{WORLDS} worlds, 0 violations, {time.monotonic() - started:.1f} s")


def test_the_worlds_are_not_all_the_same_answer() -> None:
    seen: Counter[str] = Counter()
    for seed in range(2000):
        world = policy_worlds.world(seed)
        left = allowed(world.overlays, world.field, world.values)
        seen["nothing" if not left else "all" if len(left) == len(world.values) else "some"] += 1
        seen["unreadable"] += not all(map(readable, world.overlays))
        seen["refused"] += decide_modes(world.overlays, world.manifest, world.asked).refused is not None
    assert all(seen[kind] > 100 for kind in ("nothing", "all", "some", "unreadable", "refused")), seen


def test_an_evaluator_that_skips_what_it_cannot_read_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker can fail: with broken rows ignored, the worlds above do not hold."""
    real = policy_worlds.allowed
    monkeypatch.setattr(policy_worlds, "allowed", lambda known, *rest: real([o for o in known if readable(o)], *rest))
    with pytest.raises(AssertionError, match="unreadable rules"):
        [policy_worlds.check(policy_worlds.world(seed)) for seed in range(500)]


def test_a_platform_deny_cannot_be_lifted_in_any_small_world() -> None:
    """Two values, one field, and every possible rule at each of the other levels: 4,096 worlds."""
    values = ("north", "south")
    subsets = [list(one) for size in range(3) for one in itertools.combinations(values, size)]
    every = [None] + [{"only": o} for o in subsets] + [{"deny": d} for d in subsets]
    every += [{"only": o, "deny": d} for o in subsets for d in subsets][:7]
    deny = Overlay("wins", PLATFORM, {"regions": {"deny": ["north"]}})
    count = 0
    for chosen in itertools.product(every, repeat=3):
        others = [
            Overlay(f"p{n}", place, {"regions": said} if said else {})
            for n, (place, said) in enumerate(zip((TENANT, RED, ENTITLED), chosen, strict=True))
        ]
        for order in ([deny, *others], [*others, deny]):
            ruling = judge(order, "regions", "north")
            assert not ruling.allowed
            assert ruling.level == "platform"
            assert ruling.matched[0] == "wins"
        count += 1
    assert count == len(every) ** 3 == 4096


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place[0])
@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_broken_row_refuses_everything_wherever_it_stands(place: Any, broken: Any) -> None:
    fine = Overlay("fine", PLATFORM, {"regions": {"only": ["north"]}}, MANAGED)
    for field in FIELDS:
        for value in policy_worlds.values_of(field):
            ruling = judge([fine, Overlay("broken", place, broken)], field, value)
            assert not ruling.allowed
            assert "broken" in ruling.matched
    assert decide_modes([fine, Overlay("broken", place, broken)], BOTH, {}).refused


@pytest.mark.parametrize("broken", BROKEN_ENABLES, ids=str)
def test_a_broken_enablement_refuses_everything(broken: Any) -> None:
    assert not judge([Overlay("p", PLATFORM, {}, broken)], "regions", "north").allowed


@pytest.mark.parametrize("place", PLACES[1:], ids=lambda place: place[0])
def test_only_the_platform_enables_and_an_enable_elsewhere_refuses_everything(place: Any) -> None:
    assert not judge_mode([Overlay("p", place, {}, MANAGED)], "echo", "platform_managed").allowed
    assert not judge([Overlay("p", place, {}, MANAGED)], "regions", "north").allowed


@pytest.mark.parametrize(
    "value", [None, "", "North", "north ", "north\n", "no*", "*", 7, ["north"], "-north", "a" * 64]
)
def test_a_missing_or_malformed_value_is_refused(value: Any) -> None:
    assert not judge([], "regions", value).allowed
    assert not judge([Overlay("p", PLATFORM, {"regions": {"deny": ["north"]}})], "regions", value).allowed


def test_values_are_compared_whole() -> None:
    deny = [Overlay("p", PLATFORM, {"artifact_sources": {"deny": ["models.internal"]}})]
    assert not judge(deny, "artifact_sources", "models.internal").allowed
    for other in ("models", "models.internal.evil", "internal", "xmodels.internal"):
        assert judge(deny, "artifact_sources", other).allowed


def test_an_unknown_field_is_refused() -> None:
    assert not judge([], "planets", "mars").allowed


def test_the_widest_level_speaks_and_all_that_refuse_are_named() -> None:
    red = Overlay("r", RED, {"regions": {"deny": ["north"]}}, name="mine")
    top = Overlay("t", PLATFORM, {"regions": {"only": ["south"]}}, name="law", reason="Export control.")
    ruling = judge([red, top], "regions", "north")
    assert ruling.reason == "the region 'north' is not in the allow-list of the platform policy 'law': Export control"
    assert ruling.matched == ("t", "r")


# --- modes


def test_without_any_policy_an_instance_is_dedicated_and_its_projects_own() -> None:
    modes = decide_modes([], {"app_slug": "echo", "runtime_backend": "bare_metal"}, {})
    assert modes.columns() == {
        "operating_mode": "tenant_dedicated",
        "control_plane_scope": "project",
        "runtime_backend": "bare_metal",
        "tenant_boundary_mode": "tenant_isolated",
    }
    assert modes.refused is None
    assert all(modes.reasons.values())


def test_platform_managed_is_refused_until_the_platform_enables_the_app() -> None:
    asked = {"operating_mode": "platform_managed"}
    assert decide_modes([], BOTH, asked).refused == "No platform policy enables platform_managed for the app 'echo'."
    other = Overlay("p", PLATFORM, {}, {"platform_managed": ["other"]})
    assert decide_modes([other], BOTH, asked).refused
    enabled = Overlay("p", PLATFORM, {}, MANAGED)
    modes = decide_modes([enabled], BOTH, asked)
    assert (modes.operating_mode, modes.control_plane_scope) == ("platform_managed", "platform")
    assert (modes.tenant_boundary_mode, modes.refused) == ("shared_service", None)
    for place in PLACES:
        deny = Overlay("d", place, {"operating_modes": {"deny": ["platform_managed"]}})
        assert decide_modes([enabled, deny], BOTH, asked).refused, place
    plain = {"app_slug": "echo", "runtime_backend": "bare_metal"}
    assert decide_modes([enabled], plain, asked).refused == "The app 'echo' does not support platform_managed."


def test_asking_for_the_platforms_control_plane_is_asking_to_be_managed() -> None:
    assert decide_modes([], BOTH, {"control_plane_scope": "platform"}).refused
    modes = decide_modes([Overlay("p", PLATFORM, {}, MANAGED)], BOTH, {"control_plane_scope": "platform"})
    assert modes.operating_mode == "platform_managed"


def test_a_hint_is_taken_where_it_may_be_and_gives_way_where_it_may_not() -> None:
    assert decide_modes([], BOTH, {"control_plane_scope": "tenant"}).control_plane_scope == "tenant"
    narrow = Overlay("p", TENANT, {"control_plane_scopes": {"deny": ["tenant"]}})
    assert decide_modes([narrow], BOTH, {"control_plane_scope": "tenant"}).control_plane_scope == "project"
    managed = Overlay("p", PLATFORM, {"operating_modes": {"only": ["platform_managed"]}}, MANAGED)
    assert decide_modes([managed], BOTH, {"operating_mode": "tenant_dedicated"}).operating_mode == "platform_managed"
    nothing = Overlay("p", RED, {"tenant_boundary_modes": {"only": []}})
    assert "allow-list" in str(decide_modes([nothing], BOTH, {}).refused)
