"""Every life is its table."""

import pytest
from gpuaas_core.capacity.states import ALLOCATION, NODE
from gpuaas_core.credentials.states import CREDENTIAL
from gpuaas_core.instances.states import INSTANCE, MEMBER, REPORTED
from gpuaas_core.kit.lifecycle import Lifecycle, WrongMoment
from gpuaas_core.node_tasks.states import TASK
from gpuaas_core.operations.states import OPERATION

pytestmark = pytest.mark.any_store

LIVES = {life.noun: life for life in (INSTANCE, MEMBER, OPERATION, ALLOCATION, NODE, CREDENTIAL, TASK)}
FINAL = {
    "instance": {"deleted"},
    "member": {"removed"},
    "operation": {"succeeded", "failed", "canceled", "superseded", "needs_attention"},
    "allocation": {"released"},
    "node": {"retired"},
    "credential": {"revoked"},
    "task": {"succeeded", "failed", "refused", "interrupted", "expired", "canceled"},
}


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_every_action_in_every_state_does_what_the_table_says(life: Lifecycle) -> None:
    actions = {action for row in life.moves.values() for action in row} | {"fly"}
    for state, row in life.moves.items():
        for action in actions:
            if action in row:
                assert life.after(state, action) == row[action]
                assert life.allows(state, action)
                continue
            with pytest.raises(WrongMoment) as refusal:
                life.after(state, action)
            assert not life.allows(state, action)
            assert refusal.value.status == 409
            assert state in refusal.value.detail
            offered = [move for move in row if life.asked is None or move in life.asked]
            last_words = "nothing, until its state changes by itself" if row else "nothing, this state is final"
            assert refusal.value.detail.endswith(f"Possible: {', '.join(sorted(offered)) or last_words}.")


@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES)
def test_the_end_is_the_end_and_can_be_reached(life: Lifecycle) -> None:
    assert {state for state in life.moves if life.terminal(state)} == FINAL[life.noun]
    for state in life.moves:
        reached, before = {state}, set()
        while reached != before:
            before, reached = reached, reached | {to for at in reached for to in life.moves[at].values()}
        assert reached & FINAL[life.noun], f"a {life.noun} that is {state} stays so for ever"
    first = next(iter(life.moves))
    reachable, before = {first}, set()
    while reachable != before:
        before, reachable = reachable, reachable | {to for at in reachable for to in life.moves[at].values()}
    assert reachable == set(life.moves), f"unreachable states of a {life.noun}"


def test_an_instance_can_be_torn_down_from_every_state_but_the_last_two() -> None:
    assert {state for state in INSTANCE.moves if not INSTANCE.allows(state, "delete")} == {"deleting", "deleted"}


def test_what_a_controller_reports_of_a_member_stands_for_a_known_action() -> None:
    for state, action in REPORTED.items():
        assert any(row.get(action) == state for row in MEMBER.moves.values())


def test_a_state_without_a_row_is_noticed_at_once() -> None:
    with pytest.raises(ValueError, match="flying"):
        Lifecycle("kite", {"folded": {"throw": "flying"}})
