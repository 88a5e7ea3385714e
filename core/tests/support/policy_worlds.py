"""Random worlds of policies, and what must hold in each. Also run by the hundred thousand: `for seed in …: check(world(seed))`.

Nothing here touches a store: a world is a few overlays, a field, values to ask about, and one more overlay to add.
"""

import json
import random
from dataclasses import dataclass, replace
from typing import Any

from gpuaas_core.authz.evaluate import PLATFORM
from gpuaas_core.policy.evaluate import FIELDS, Overlay, allowed, effective, judge, judge_mode, readable
from gpuaas_core.policy.modes import VOCABULARY, decide_modes

TENANT, RED, ENTITLED = ("tenant", "t1"), ("project", "red"), ("entitlement", "red/echo")
PLACES = [PLATFORM, TENANT, RED, ENTITLED]
OPEN = ["north", "south", "east", "west", "echo", "a100", "bare_metal", "never-named"]
BROKEN: list[Any] = [
    None,
    [],
    "regions",
    7,
    {"planets": {"deny": ["mars"]}},
    {"regions": None},
    {"regions": {}},
    {"regions": ["north"]},
    {"regions": {"deny": "north"}},
    {"regions": {"deny": [7]}},
    {"regions": {"deny": ["North"]}},
    {"regions": {"deny": ["no*"]}},
    {"regions": {"allow": ["north"]}},
    {"regions": {"only": None}},
]
BROKEN_ENABLES: list[Any] = [[], "all", {}, {"platform_managed": "echo"}, {"everything": ["echo"]}]


@dataclass(frozen=True)
class PolicyWorld:
    overlays: tuple[Overlay, ...]
    more: Overlay  # one overlay or deny to add; it enables nothing
    field: str
    values: tuple[str, ...]
    manifest: dict[str, Any]
    asked: dict[str, str | None]


def world(seed: int) -> PolicyWorld:
    dice = random.Random(seed)
    field = dice.choice(list(FIELDS))
    overlays = tuple(overlay(dice, number, field) for number in range(dice.randrange(6)))
    more = replace(overlay(dice, 9, field), enables=None)
    return PolicyWorld(overlays, more, field, tuple(values_of(field)), _manifest(dice), _asked(dice))


def values_of(field: str) -> list[str]:
    return [*VOCABULARY.get(field, ()), *OPEN]


def overlay(dice: random.Random, number: int, field: str, *, broken: float = 0.08) -> Overlay:
    place = dice.choice(PLACES)
    fields = {field, dice.choice(list(FIELDS))} if dice.random() < 0.8 else {dice.choice(list(FIELDS))}
    rules: Any = {one: _rule(dice, one) for one in sorted(fields)}
    enables: Any = {"platform_managed": ["echo"]} if place == PLATFORM and dice.random() < 0.4 else None
    if dice.random() < broken:
        rules, enables = dice.choice([(dice.choice(BROKEN), enables), (rules, dice.choice(BROKEN_ENABLES))])
    return Overlay(f"p{number}", place, rules, enables, f"rule-{number}", dice.choice(["", "because"]))


def _rule(dice: random.Random, field: str) -> dict[str, list[str]]:
    names = values_of(field)[:-1]
    only, deny = dice.sample(names, dice.randrange(len(names) + 1)), dice.sample(names, dice.randrange(3))
    return dice.choice([{"only": only}, {"deny": deny}, {"only": only, "deny": deny}])


def _manifest(dice: random.Random) -> dict[str, Any]:
    some = {f: dice.sample(values, dice.randrange(1, len(values) + 1)) for f, values in VOCABULARY.items()}
    return {"app_slug": "echo", "runtime_backend": "bare_metal"} | {
        f: v for f, v in some.items() if dice.random() < 0.7
    }


def _asked(dice: random.Random) -> dict[str, str | None]:
    hints = {"operating_mode": "operating_modes", "control_plane_scope": "control_plane_scopes"}
    return {name: dice.choice([None, *VOCABULARY[field]]) for name, field in hints.items()}


def check(world: PolicyWorld) -> None:
    """Everything that is promised of overlays; raises where one promise does not hold."""
    overlays, field, values = world.overlays, world.field, world.values
    left = allowed(overlays, field, values)
    after = allowed([*overlays, world.more], field, values)
    assert after <= left, "one more overlay enlarged what is allowed"
    for position in range(len(overlays)):
        fewer = allowed(overlays[:position] + overlays[position + 1 :], field, values)
        assert left <= fewer, "taking an overlay away took something away"
    assert allowed(overlays[::-1], field, values) == left, "the order of overlays matters"
    assert left == frozenset.intersection(frozenset(values), *(allowed([one], field, values) for one in overlays)), (
        "the whole is not the intersection of its parts"
    )
    if not all(map(readable, overlays)):
        assert not left, "an overlay with unreadable rules allowed something"
    _check_rulings(world)
    _check_modes(world)


def _check_rulings(world: PolicyWorld) -> None:
    overlays, field = world.overlays, world.field
    whole = effective(overlays, field, world.values)
    for value in world.values:
        ruling = judge(overlays, field, value)
        assert whole.values[value] == ruling
        assert set(ruling.matched) <= {one.id for one in overlays}
        assert ruling.allowed or ruling.matched, "a refusal that names no rule"
        if ruling.allowed:
            assert value not in whole.denied
            assert whole.only is None or value in whole.only
    assert whole.others.allowed == judge(overlays, field, "never-named").allowed


def _check_modes(world: PolicyWorld) -> None:
    overlays, app = world.overlays, world.manifest["app_slug"]
    for mode in VOCABULARY["operating_modes"]:
        before = judge_mode(overlays, app, mode).allowed
        assert judge_mode([*overlays, world.more], app, mode).allowed <= before, "one more overlay enabled a mode"
        assert before <= judge(overlays, "operating_modes", mode).allowed, "enabling lifted a deny"
    modes = decide_modes(overlays, world.manifest, world.asked)
    if modes.refused is None:
        assert judge_mode(overlays, app, modes.operating_mode).allowed
        assert judge(overlays, "control_plane_scopes", modes.control_plane_scope).allowed
        assert judge(overlays, "tenant_boundary_modes", modes.tenant_boundary_mode).allowed
        assert judge(overlays, "runtime_backends", modes.runtime_backend).allowed
    asked = "platform_managed" in world.asked.values() or world.asked.get("control_plane_scope") == "platform"
    if asked and world.asked["operating_mode"] != "tenant_dedicated" and modes.refused is None:
        assert modes.operating_mode == "platform_managed", "who asked to be managed was left alone"


def written(rules: Any) -> str:
    """As a store keeps it."""
    return json.dumps(rules)
