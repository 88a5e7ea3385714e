"""From the tables: a person can leave every state, and each state × action does what is shown and what the table says."""

from collections.abc import Callable
from typing import Any

import pytest
from gpuaas_core.authz.context import Context
from gpuaas_core.authz.evaluate import Principal
from gpuaas_core.instances import membership, outcomes, reads, schemas, service, views
from gpuaas_core.instances.states import INSTANCE, KINDS, MEMBER, OF_INSTANCE, OF_MEMBER
from gpuaas_core.instances.tables import instances, members
from gpuaas_core.kit.correlation import Correlation
from gpuaas_core.kit.lifecycle import Lifecycle
from gpuaas_core.kit.problems import Problem
from gpuaas_core.operations import recovery
from gpuaas_core.operations.reads import operation_row
from gpuaas_core.operations.states import OPERATION
from gpuaas_core.operations.tables import operations
from gpuaas_core.operations.views import operation_view
from gpuaas_core.tenancy.reads import project_scope
from sqlalchemy import Connection, update

from core.tests.instances.test_instances import publish
from core.tests.support.fixtures import World

PEOPLE = {  # what a person can do alone, with no controller and no hand in the store
    INSTANCE: {"delete", "abandon"},
    MEMBER: {"remove", "abandon", "tombstone"},
    OPERATION: {"abandon"},
}


@pytest.mark.parametrize("life", PEOPLE, ids=[life.noun for life in PEOPLE])
def test_a_person_alone_can_lead_everything_to_an_end_from_every_state(life: Lifecycle) -> None:
    for state in life.moves:
        reached, before = {state}, set()
        while reached != before:
            before = set(reached)
            reached |= {to for at in before for action, to in life.moves[at].items() if action in PEOPLE[life]}
        assert any(life.terminal(one) for one in reached), f"a {life.noun} that is {state} cannot be ended"


def asked(tx: Connection, world: World, fn: Callable[[Context], Any]) -> Any:
    """The answer, or the problem; nothing stays."""
    scope = project_scope(tx, world.red)
    ctx = Context(
        tx, Principal("boss", "user", "boss"), scope, "test", Correlation("cor-x", "0" * 32), world.platform.clock()
    )
    nested = tx.begin_nested()
    try:
        return fn(ctx)
    except Problem as problem:
        return problem
    finally:
        nested.rollback()


def shown(view: Any, action: str) -> Any:
    return next(one for one in view.available_actions if one.action == action)


async def test_every_state_and_action_of_an_instance(world: World) -> None:
    instance_id = (await world.running())["id"]
    await publish(world, "1.1.0")
    p, at = world.red, instance_id
    verbs: dict[str, Callable[[Context], Any]] = {
        kind: lambda ctx, kind=kind: service.ask(ctx, p, at, kind)
        for kind in ("stop", "start", "restart", "rotate_keys")
    }
    verbs["decommission"] = lambda ctx: service.decommission(ctx, p, at)
    verbs["upgrade"] = lambda ctx: service.upgrade(ctx, p, at, schemas.UpgradeInstance(version="1.1.0"))
    verbs["rollback"] = lambda ctx: service.roll_back(ctx, p, at)
    new = schemas.UpdateInstance(inputs={})
    verbs["reconfigure"] = lambda ctx: service.change_inputs(
        ctx, p, at, new, views.instance_view(ctx.tx, reads.instance_row(ctx.tx, p, at)).etag
    )
    assert set(verbs) == {kind for kind, known in KINDS.items() if known.target == OF_INSTANCE and known.ask}
    pairs = 0
    with world.platform.db.engine.connect() as tx:
        for state in INSTANCE.moves:
            tx.execute(update(instances).where(instances.c.id == at).values(state=state, previous_version="0.9.0"))
            view = views.instance_view(tx, reads.instance_row(tx, p, at))
            for kind, verb in verbs.items():
                possible, answer = INSTANCE.allows(state, str(KINDS[kind].ask)), asked(tx, world, verb)
                offered = shown(view, KINDS[kind].key or kind)
                assert (not isinstance(answer, Problem)) == possible == offered.allowed, (state, kind, answer)
                if possible:
                    assert answer.instance.state == INSTANCE.after(state, str(KINDS[kind].ask))
                else:
                    assert (answer.status, answer.detail) == (409, offered.reason)
                pairs += 1
        tx.rollback()
    assert pairs == len(INSTANCE.moves) * len(verbs)


async def test_every_state_and_action_of_a_member(world: World) -> None:
    spare = await world.more_machines(2)
    instance = await world.several(world.allocations[1], spare[0])
    p, at, member = world.red, instance["id"], instance["members"][-1]["id"]
    verbs: dict[str, Callable[[Context], Any]] = {
        kind: lambda ctx, kind=kind: membership.ask(ctx, p, at, member, kind, {})
        for kind, known in KINDS.items()
        if known.target == OF_MEMBER and known.ask
    }
    body = schemas.ReplaceMember(allocation_id=spare[1])
    verbs["replace_member"] = lambda ctx: membership.replace(ctx, p, at, member, body)
    verbs["tombstone"] = lambda ctx: outcomes.tombstone(ctx, p, at, member, "a good reason")
    with world.platform.db.engine.connect() as tx:
        for state in MEMBER.moves:
            tx.execute(update(members).where(members.c.id == member).values(state=state))
            view = views.member_view(tx, reads.instance_row(tx, p, at), reads.member_row(tx, at, member))
            for kind, verb in verbs.items():
                ask = "tombstone" if kind == "tombstone" else KINDS[kind].ask
                possible = MEMBER.allows(state, ask) if ask else state not in ("removing", "removed")
                answer = asked(tx, world, verb)
                offered = shown(view, "tombstone" if kind == "tombstone" else KINDS[kind].key)
                assert (not isinstance(answer, Problem)) == possible == offered.allowed, (state, kind, answer)
                assert possible or (answer.status, answer.detail) == (409, offered.reason)
        tx.rollback()


async def test_every_status_and_action_of_an_operation(world: World) -> None:
    accepted = await world.deploy()
    await world.claim()
    p, operation_id = world.red, accepted["operation"]["id"]
    verbs: dict[str, tuple[str, Callable[[Context], Any]]] = {
        "cancel": ("cancel", lambda ctx: recovery.cancel(ctx, p, operation_id)),
        "release_claim": ("release", lambda ctx: recovery.release_claim(ctx, p, operation_id, None)),
        "abandon": ("abandon", lambda ctx: recovery.abandon(ctx, p, operation_id, "a good reason")),
    }
    with world.platform.db.engine.connect() as tx:
        for status in OPERATION.moves:
            tx.execute(update(operations).where(operations.c.id == operation_id).values(status=status))
            view = operation_view(tx, operation_row(tx, p, operation_id))
            for name, (action, verb) in verbs.items():
                answer, offered = asked(tx, world, verb), shown(view, name)
                possible = OPERATION.allows(status, action)
                assert (not isinstance(answer, Problem)) == possible == offered.allowed, (status, name, answer)
                assert possible or (answer.status, answer.detail) == (409, offered.reason)
        tx.rollback()
