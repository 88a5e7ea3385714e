"""`gpuaas member list|show|add|drain|undrain|restart|remove|replace|retry|tombstone`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import gpuaas_sdk as sdk
from cyclopts import App, Parameter

from .. import failures, show
from ..batches import wait_for_batch
from ..context_flags import there
from ..failures import CliError
from ..operation_stream import sequence_now
from ..options import Changing, Common, Destroying, Flag, Instance, Looking, Member, NoWait, Reason
from ..session import Session, session
from ..wait import say_next
from .instance import follow, show_plan

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AcceptedView, MemberView

AtDeadline = Literal["give_back", "requeue"]
app = App(name="member", help="The members of an instance: add, drain, replace, remove, mend.")


@app.command(name="list")
def list_members(instance: Instance, /, *, history: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """The members of an instance and how they are.

    Example: gpuaas member list train
    Example: gpuaas member list train --history

    Parameters
    ----------
    history
        Those that were removed.
    """
    with session(common) as at:
        found = _members(at, at.instance(instance, deleted=True).id, history=history)
    if common.json:
        return show.as_json(found)
    if not found:
        print("No members.")
        return None
    rows = [(_name(m), m.state, m.runtime_state or "-", m.node_name, m.address, m.id) for m in found]
    return show.table(("MEMBER", "STATE", "RUNTIME", "NODE", "ADDRESS", "ID"), rows)


@app.command(name="show")
def show_member(instance: Instance, member: Member, /, *, common: Looking = Looking()) -> None:
    """One member: where it is, how it is, what can be done with it.

    Example: gpuaas member show train worker/1
    """
    with session(common) as at:
        found = at.client.get_member(at.project_id, *find(at, instance, member))
    if common.json:
        return show.as_json(found)
    no = [f"{a.action} ({a.reason})" for a in found.available_actions if not a.allowed]
    return show.facts(
        [
            ("member", f"{_name(found)} on {found.node_name} ({found.address})"),
            ("state", found.state),
            ("runtime", " ".join(one for one in (found.runtime_state, found.runtime_version) if one)),
            ("possible", ", ".join(a.action for a in found.available_actions if a.allowed)),
            ("not now", "; ".join(no)),
            ("operation", found.current_operation_id or found.last_operation_id or ""),
            ("replaces", found.replaces or ""),
            ("allocation", found.allocation_id),
            ("id", found.id),
            ("correlation", found.correlation_id),
        ]
    )


def _members(at: Session, instance_id: str, *, history: bool = False) -> list[MemberView]:
    return list(at.client.every(sdk.Calls.list_members, at.project_id, instance_id, history=history or None))


def _name(member: MemberView) -> str:
    return f"{member.component_key}/{member.ordinal}"


def find(at: Session, instance: str, member: str) -> tuple[str, str]:
    """Ids of the instance and of its member."""
    instance_id = at.instance(instance).id
    if member.startswith("mem_"):
        return instance_id, member
    for one in _members(at, instance_id):
        if _name(one) == member:
            return instance_id, one.id
    raise CliError(
        f"There is no member called {member}.", f"See: {there(f'gpuaas member list {instance}')}", failures.NOT_FOUND
    )


@app.command
def add(
    instance: Instance,
    component: str,
    /,
    *allocations: str,
    plan: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int | None:
    """Add members, one operation each, all under one batch id, and watch them come up side by side.

    Example: gpuaas member add train worker node-b node-c
    Example: gpuaas member add train worker node-b --plan

    Parameters
    ----------
    component
        Which part of the app, for example worker.
    allocations
        Names of allocations or nodes, or ids.
    plan
        Only check, and say what would happen where.
    """
    if not allocations:
        way_out = (
            f"Name one or more: gpuaas member add {instance} {component} MACHINE. Free ones: gpuaas allocation list"
        )
        raise CliError("On which machines?", way_out, failures.USAGE)
    with session(common) as at:
        known = at.allocations()
        ids = [at.allocation_id(name, known) for name in allocations]
        where = at.instance(instance)
        said = {"component_key": component, "allocation_ids": ids}
        if plan:
            return show_plan(at, at.client.plan_members(at.project_id, where.id, **said), common)
        before = sequence_now(at.client, at.project_id)
        batch = at.client.add_members(at.project_id, where.id, **said)
        if not no_wait:
            return wait_for_batch(at, batch, component, after=before, json=common.json)
    if common.json:
        return show.as_json(batch)
    print(f"Accepted: {len(batch.operations)} × {component} for {batch.instance.name} (batch {batch.batch_id}).")
    return say_next((f"gpuaas member list {batch.instance.name}", "see how they come up"))


@app.command
def drain(
    instance: Instance,
    member: Member,
    /,
    *,
    reason: str | None = None,
    deadline: int | None = None,
    at_deadline: AtDeadline | None = None,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Let nothing new begin on a member, and wait for what goes on there.

    Example: gpuaas member drain train worker/1 --reason "new fan" --deadline 3600
    Example: gpuaas member drain train worker/1 --deadline 0 --at-deadline requeue

    Parameters
    ----------
    reason
        Why, for the record and the app.
    deadline
        Seconds the app may wait for what goes on there.
    at_deadline
        What then happens to it: give_back (the member takes work again) or requeue (it starts anew elsewhere).
    """
    said = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
    return _ask("drain_member", instance, member, no_wait, common, **said)


@app.command
def undrain(instance: Instance, member: Member, /, *, no_wait: NoWait = False, common: Changing = Changing()) -> int:
    """Bring a drained member back.

    Example: gpuaas member undrain train worker/1
    """
    return _ask("undrain_member", instance, member, no_wait, common)


@app.command
def restart(instance: Instance, member: Member, /, *, no_wait: NoWait = False, common: Changing = Changing()) -> int:
    """Restart one member.

    Example: gpuaas member restart train worker/1
    """
    return _ask("restart_member", instance, member, no_wait, common)


@app.command
def remove(
    instance: Instance,
    member: Member,
    /,
    *,
    reason: Reason = None,
    deadline: int | None = None,
    at_deadline: AtDeadline | None = None,
    host_is_gone: Annotated[bool, Flag] = False,
    plan: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Destroying = Destroying(),
) -> int | None:
    """Take a member away and clean its host; its allocation is free then.

    Example: gpuaas member remove train worker/1
    Example: gpuaas member remove train worker/1 --plan
    Example: gpuaas member remove train worker/1 --host-is-gone --reason "it burned"

    Parameters
    ----------
    deadline
        Seconds the app may wait for what goes on there.
    at_deadline
        What then happens to it: give_back (the member takes work again) or requeue (it starts anew elsewhere).
    host_is_gone
        The machine does not come back: fence it instead of cleaning it. Needs a reason.
    plan
        Only check, and say what would happen where.
    """
    if not plan:
        said = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
        said |= {"host_is_gone": host_is_gone or None}
        return _ask("remove_member", instance, member, no_wait, common, **said)
    with session(common) as at:
        return show_plan(at, at.client.plan_remove_member(at.project_id, *find(at, instance, member)), common)


@app.command
def replace(
    instance: Instance,
    member: str,
    allocation: str,
    /,
    *,
    reason: Reason = None,
    deadline: int | None = None,
    at_deadline: AtDeadline | None = None,
    host_is_gone: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Destroying = Destroying(),
) -> int:
    """Put a new member on another allocation in place of an old one.

    Example: gpuaas member replace train worker/1 node-d
    Example: gpuaas member replace train worker/1 node-d --host-is-gone --reason "it burned"

    Parameters
    ----------
    member
        The old one: component/number (worker/0), or its id.
    allocation
        Where the new one goes: name of an allocation or node, or id.
    deadline
        Seconds the app may wait for what goes on on the old one.
    at_deadline
        What then happens to it: give_back (the member takes work again) or requeue (it starts anew elsewhere).
    host_is_gone
        The old machine does not come back: fence it instead of cleaning it. Needs a reason.
    """
    with session(common) as at:
        chosen = at.allocation_id(allocation, at.allocations())
    said = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
    said |= {"allocation_id": chosen, "host_is_gone": host_is_gone or None}
    return _ask("replace_member", instance, member, no_wait, common, **said)


@app.command
def retry(
    instance: Instance,
    member: Member,
    /,
    *,
    anyway: Annotated[bool, Flag] = False,
    no_wait: NoWait = False,
    common: Changing = Changing(),
) -> int:
    """Try again what failed on a member.

    Example: gpuaas member retry train worker/1

    Parameters
    ----------
    anyway
        Even if the app refuses to after repeated failures.
    """
    return _ask("retry_member", instance, member, no_wait, common, try_anyway=anyway or None)


@app.command
def tombstone(
    instance: Instance, member: Member, /, *, reason: Annotated[str, Parameter()], common: Destroying = Destroying()
) -> None:
    """Count a failed member as gone though nobody could clean up after it. Leaves an orphan record.

    Example: gpuaas member tombstone train worker/1 --reason "the machine burned"

    Parameters
    ----------
    reason
        Why; whoever looks at the machine later reads it.
    """
    with session(common) as at:
        gone = at.client.tombstone_member(at.project_id, *find(at, instance, member), reason=reason)
    if common.json:
        return show.as_json(gone)
    print(f"{member} counts as removed. Something may be left on its machine: {gone.orphan_id}.")
    return say_next((f"gpuaas orphan resolve {gone.orphan_id} --reason …", "once somebody has looked"))


def _ask(call: str, instance: str, member: str, no_wait: bool, common: Common, **said: object) -> int:
    with session(common) as at:
        where = find(at, instance, member)
        before = sequence_now(at.client, at.project_id)
        accepted: AcceptedView = getattr(at.client, call)(at.project_id, *where, **said)
        return follow(at, accepted, no_wait, common, after=before)
