"""The evaluator over random worlds: what takes away never gives, what cannot be read denies."""

import os
import random
from collections.abc import Callable

import pytest
from gpuaas_core.authz.evaluate import PLATFORM, Binding, Deny, Principal, Scope, covers, evaluate
from gpuaas_core.authz.permissions import BINDABLE, EVERYBODY, PERMISSIONS, ROLES, UNDENIABLE
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.any_store

WORLDS = int(os.environ.get("GPUAAS_WORLDS", "100000"))
KEYS = sorted(PERMISSIONS)
FAMILIES = sorted({f"{key.split('.')[0]}.*" for key in KEYS} | {key.rsplit(".", 1)[0] + ".*" for key in KEYS})
BROKEN = [None, [], {}, "apps.*", 7, [None], [["apps.*"]], ["apps.**"], ["*"], [""], ["apps"], [{"key": "apps.*"}]]
TENANT, RED, BLUE, NODE = ("tenant", "t1"), ("project", "red"), ("project", "blue"), ("node", "n1")
ELSEWHERE = [("tenant", "t2"), ("project", "elsewhere"), ("node", "n2")]
SCOPES = [
    Scope(),
    Scope((TENANT, PLATFORM), tenant_id="t1"),
    Scope((RED, TENANT, PLATFORM), tenant_id="t1", project_id="red"),
    Scope((BLUE, TENANT, PLATFORM), tenant_id="t1", project_id="blue"),
    Scope((NODE, TENANT, PLATFORM), tenant_id="t1"),
]
PLACES = [PLATFORM, TENANT, RED, BLUE, NODE, *ELSEWHERE]

own = st.frozensets(st.sampled_from(KEYS), max_size=6)
bindings = st.builds(
    Binding,
    st.sampled_from([*ROLES, "night-shift"]),
    st.sampled_from(PLACES),
    st.sampled_from([f"b{n}" for n in range(9)]),
    st.none() | own,
)
patterns = st.lists(st.sampled_from(KEYS + FAMILIES), min_size=1, max_size=3)
rules = st.builds(Deny, st.just("d"), st.sampled_from(PLACES), patterns | st.sampled_from(BROKEN))
people = st.builds(
    Principal,
    st.just("p"),
    st.just("user"),
    st.just("P"),
    project_id=st.sampled_from([None, None, "red"]),
    bindings=st.lists(bindings, max_size=4).map(tuple),
)


def _without(principal: Principal, position: int) -> Principal:
    fewer = principal.bindings[:position] + principal.bindings[position + 1 :]
    return Principal(principal.id, principal.kind, principal.name, project_id=principal.project_id, bindings=fewer)


def _check(principal: Principal, key: str, scope: Scope, denies: list[Deny], more: Deny) -> None:
    base, plain = evaluate(principal, key, scope, denies), evaluate(principal, key, scope)
    assert base.allowed <= plain.allowed, "deny rules enlarged what is allowed"
    assert base.visible <= plain.visible, "deny rules enlarged what is seen"
    assert base.allowed <= base.visible, "allowed, though not even seen"
    after = evaluate(principal, key, scope, [*denies, more])
    assert after.allowed <= base.allowed, "one more deny rule enlarged what is allowed"
    assert after.visible <= base.visible
    for position in range(len(principal.bindings)):
        fewer = evaluate(_without(principal, position), key, scope, denies)
        assert fewer.allowed <= base.allowed, "removing a binding enlarged what is allowed"
        assert fewer.visible <= base.visible, "removing a binding enlarged what is seen"
    if principal.project_id and scope.project_id != principal.project_id and scope.chain[0] != PLATFORM:
        assert not base.allowed
        assert not base.visible
    if base.allowed:
        assert base.decided_by in ("binding", "everybody")
        assert not any(rule.place in scope.chain and covers(rule, key) for rule in denies)
        assert base.matched or key in EVERYBODY
    assert set(base.matched) <= {b.id for b in principal.bindings} | {d.id for d in denies}
    assert evaluate(principal, key, scope, reversed(denies)).allowed == base.allowed, "the order of rules matters"


@settings(max_examples=1000, deadline=None)
@given(people, st.sampled_from(KEYS), st.sampled_from(SCOPES), st.lists(rules, max_size=3), rules)
def test_what_takes_away_never_gives(
    principal: Principal, key: str, scope: Scope, denies: list[Deny], more: Deny
) -> None:
    _check(principal, key, scope, denies, more)


def _roles_and_denies(dice: random.Random) -> None:
    _check(*_world(dice))


# Each makes a world from the dice and looks at it; a new layer that takes away gets its line here.
LAYERS: list[Callable[[random.Random], None]] = [_roles_and_denies]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__.strip("_"))
def test_what_takes_away_never_gives_in_many_worlds(layer: Callable[[random.Random], None]) -> None:
    """The same, without shrinking and therefore a hundred times as often; other worlds each time."""
    first = int(os.environ.get("GPUAAS_SEED", random.randrange(10**9)))
    for seed in range(first, first + WORLDS):
        try:
            layer(random.Random(seed))
        except AssertionError as error:
            raise AssertionError(f"in the world GPUAAS_SEED={seed}: {error}") from error


def _world(dice: random.Random) -> tuple[Principal, str, Scope, list[Deny], Deny]:
    key, scope = dice.choice(KEYS), dice.choice(SCOPES)

    def place() -> tuple[str, str]:
        return dice.choice(scope.chain) if dice.random() < 0.7 else dice.choice(PLACES)

    def binding(number: int) -> Binding:
        if dice.random() < 0.3:
            return Binding("night-shift", place(), f"b{number}", frozenset([*dice.sample(KEYS, 4), key]))
        return Binding(dice.choice(list(ROLES)), place(), f"b{number}")

    def rule(number: int) -> Deny:
        keys = dice.choice(BROKEN) if dice.random() < 0.2 else [dice.choice([key, *FAMILIES, *KEYS])]
        return Deny(f"d{number}", place(), keys)

    held = tuple(binding(number) for number in range(dice.randrange(4)))
    home = "red" if dice.random() < 0.2 else None
    who = Principal("p", "user", "P", project_id=home, bindings=held)
    return who, key, scope, [rule(number) for number in range(dice.randrange(3))], rule(9)


def test_the_worlds_are_not_all_the_same_answer() -> None:
    """A property that holds because nothing is ever allowed proves nothing."""
    seen = {"containment": 0, "deny": 0, "binding": 0, "everybody": 0, "default": 0}
    for seed in range(2000):
        who, key, scope, denies, _ = _world(random.Random(seed))
        seen[evaluate(who, key, scope, denies).decided_by] += 1
    assert min(seen.values()) > 5, seen
    assert seen["binding"] > 300, seen


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_rule_that_cannot_be_read_denies_everything_but_its_mending(broken: object) -> None:
    everything = Principal("p", "user", "P", bindings=(Binding("all", TENANT, "b", frozenset(KEYS)),))
    for key in KEYS:
        decision = evaluate(everything, key, SCOPES[2], [Deny("d", TENANT, broken)])
        assert decision.allowed == (key in UNDENIABLE), key
        assert decision.decided_by == ("binding" if key in UNDENIABLE else "deny")


def test_a_rule_elsewhere_decides_nothing() -> None:
    lead = Principal("p", "user", "P", bindings=(Binding("project_admin", RED, "b"),))
    for place in (BLUE, NODE, *ELSEWHERE):
        assert evaluate(lead, "apps.instance.create", SCOPES[2], [Deny("d", place, ["apps.*"])]).allowed


def test_the_widest_rule_speaks_first_and_all_are_named() -> None:
    lead = Principal("p", "user", "P", bindings=(Binding("project_admin", RED, "b"),))
    denies = [Deny("red", RED, ["apps.*"], "no apps in red"), Deny("all", PLATFORM, ["apps.*"], "upgrade tonight")]
    decision = evaluate(lead, "apps.instance.create", SCOPES[2], denies)
    assert "upgrade tonight" in decision.reason
    assert set(decision.matched) == {"red", "all"}


def test_an_unknown_role_gives_nothing() -> None:
    powerless = Principal("p", "user", "P", bindings=(Binding("made_up", RED, "b"),))
    assert not any(evaluate(powerless, key, SCOPES[2]).allowed for key in KEYS)


def test_every_bindable_role_exists_and_no_system_role_can_be_a_tenants_own_name() -> None:
    assert BINDABLE.keys() <= ROLES.keys()
    assert all("_" in role for role in ROLES), "a tenant's own names have no underscore, so that the two never meet"
