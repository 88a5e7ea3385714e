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
from ..wait import print_next
from .instance import follow, show_plan

if TYPE_CHECKING:
    from gpuaas_sdk.client.models import AcceptedView, MemberView

AtDeadline = Literal["give_back", "requeue"]
app = App(name="member", help="Add, drain, restart, replace and remove members of an instance.")


@app.command(name="list")
def list_members(instance: Instance, /, *, history: Annotated[bool, Flag] = False, common: Looking = Looking()) -> None:
    """List the members of an instance and their states.

    Example: gpuaas member list train
    Example: gpuaas member list train --history

    Parameters
    ----------
    history
        List removed members instead.
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
    """Show a member in detail: node, state and allowed actions.

    Example: gpuaas member show train worker/1
    """
    with session(common) as at:
        found = at.client.get_member(at.project_id, *find(at, instance, member))
    if common.json:
        return show.as_json(found)
    refused = [f"{a.action} ({a.reason})" for a in found.available_actions if not a.allowed]
    return show.facts(
        [
            ("member", f"{_name(found)} on {found.node_name} ({found.address})"),
            ("state", found.state),
            ("runtime", " ".join(one for one in (found.runtime_state, found.runtime_version) if one)),
            ("allowed actions", ", ".join(a.action for a in found.available_actions if a.allowed)),
            ("not allowed", "; ".join(refused)),
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
    """Return the ids of an instance and of its member."""
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
    """Add members to an instance, one operation per member under a common batch id, and show the progress.

    Example: gpuaas member add train worker node-b node-c
    Example: gpuaas member add train worker node-b --plan

    Parameters
    ----------
    component
        A component of the app, for example worker.
    allocations
        Allocations for the new members: allocation names, node names or ids.
    plan
        Change nothing; check the request and print what would happen on which node.
    """
    if not allocations:
        way_out = f"Run gpuaas member add {instance} {component} ALLOCATION…. See the nodes: gpuaas allocation list"
        raise CliError("No node was named.", way_out, failures.USAGE)
    with session(common) as at:
        known = at.allocations()
        ids = [at.allocation_id(name, known) for name in allocations]
        where = at.instance(instance)
        wanted = {"component_key": component, "allocation_ids": ids}
        if plan:
            return show_plan(at, at.client.plan_members(at.project_id, where.id, **wanted), common)
        before = sequence_now(at.client, at.project_id)
        batch = at.client.add_members(at.project_id, where.id, **wanted)
        if not no_wait:
            return wait_for_batch(at, batch, component, after=before, json=common.json)
    if common.json:
        return show.as_json(batch)
    print(f"Accepted: {len(batch.operations)} × {component} for {batch.instance.name} (batch {batch.batch_id}).")
    return print_next((f"gpuaas member list {batch.instance.name}", "follow their progress"))


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
    """Drain a member: it accepts no new work; the command waits until the running work ends.

    Example: gpuaas member drain train worker/1 --reason "new fan" --deadline 3600
    Example: gpuaas member drain train worker/1 --deadline 0 --at-deadline requeue

    Parameters
    ----------
    reason
        Recorded in the audit trail, and passed to the app.
    deadline
        Seconds to wait until running work ends.
    at_deadline
        Action at the deadline: give_back (the member accepts work again) or requeue (running work restarts elsewhere).
    """
    options = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
    return _ask("drain_member", instance, member, no_wait, common, **options)


@app.command
def undrain(instance: Instance, member: Member, /, *, no_wait: NoWait = False, common: Changing = Changing()) -> int:
    """Let a drained member accept work again.

    Example: gpuaas member undrain train worker/1
    """
    return _ask("undrain_member", instance, member, no_wait, common)


@app.command
def restart(instance: Instance, member: Member, /, *, no_wait: NoWait = False, common: Changing = Changing()) -> int:
    """Restart a member of an instance.

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
    """Remove a member from an instance and clean its node. The allocation is then free.

    Example: gpuaas member remove train worker/1
    Example: gpuaas member remove train worker/1 --plan
    Example: gpuaas member remove train worker/1 --host-is-gone --reason "it burned"

    Parameters
    ----------
    deadline
        Seconds to wait until running work ends.
    at_deadline
        Action at the deadline: give_back (the member accepts work again) or requeue (running work restarts elsewhere).
    host_is_gone
        The node is lost: fence it instead of cleaning it. Requires --reason.
    plan
        Change nothing; check the request and print what would happen on which node.
    """
    if not plan:
        options = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
        options |= {"host_is_gone": host_is_gone or None}
        return _ask("remove_member", instance, member, no_wait, common, **options)
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
    """Replace a member with a new member on another allocation.

    Example: gpuaas member replace train worker/1 node-d
    Example: gpuaas member replace train worker/1 node-d --host-is-gone --reason "it burned"

    Parameters
    ----------
    member
        The old member: COMPONENT/NUMBER (worker/0), or its id.
    allocation
        The allocation of the new member: allocation name, node name or id.
    deadline
        Seconds to wait until running work on the old member ends.
    at_deadline
        Action at the deadline: give_back (the member accepts work again) or requeue (running work restarts elsewhere).
    host_is_gone
        The old node is lost: fence it instead of cleaning it. Requires --reason.
    """
    with session(common) as at:
        chosen = at.allocation_id(allocation, at.allocations())
    options = {"reason": reason, "deadline_s": deadline, "at_deadline": at_deadline}
    options |= {"allocation_id": chosen, "host_is_gone": host_is_gone or None}
    return _ask("replace_member", instance, member, no_wait, common, **options)


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
    """Retry the failed operation of a member.

    Example: gpuaas member retry train worker/1

    Parameters
    ----------
    anyway
        Retry even if the app refuses after repeated failures.
    """
    return _ask("retry_member", instance, member, no_wait, common, try_anyway=anyway or None)


@app.command
def tombstone(
    instance: Instance, member: Member, /, *, reason: Annotated[str, Parameter()], common: Destroying = Destroying()
) -> None:
    """Mark a failed member as removed without cleaning its node. Creates an orphan record for the node.

    Example: gpuaas member tombstone train worker/1 --reason "the machine burned"

    Parameters
    ----------
    reason
        Recorded with the orphan record.
    """
    with session(common) as at:
        gone = at.client.tombstone_member(at.project_id, *find(at, instance, member), reason=reason)
    if common.json:
        return show.as_json(gone)
    print(f"{member} counts as removed. Its node may not be clean: orphan record {gone.orphan_id}.")
    return print_next((f"gpuaas orphan resolve {gone.orphan_id} --reason …", "when the node is clean"))


def _ask(call: str, instance: str, member: str, no_wait: bool, common: Common, **options: object) -> int:
    with session(common) as at:
        where = find(at, instance, member)
        before = sequence_now(at.client, at.project_id)
        accepted: AcceptedView = getattr(at.client, call)(at.project_id, *where, **options)
        return follow(at, accepted, no_wait, common, after=before)
