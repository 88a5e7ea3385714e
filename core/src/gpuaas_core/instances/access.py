"""Access to the machines of an instance: when access grants end, which machines are fenced, and SSH sessions of people.

`api/` registers two purposes with machine access: a controller that observes an instance, and a person on a member's
machine. Machine access asks each purpose every second for grants that must end; each is one indexed query over live
grants.

A member whose machine is lost is fenced first; then the app removes it from all other machines. From the request on,
this instance gets no certificates for the machine, and existing ones are revoked. The app works on all other members
meanwhile (they must stop trusting the machine), so no other operation runs beside it. Because the machine was not
cleaned, an orphan record blocks new work there until a person has inspected it.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, case, not_, or_, select, union_all

from ..authz.context import Context
from ..authz.ids import PrincipalId, ProjectId
from ..authz.rules import decide
from ..capacity.holds import held_by
from ..capacity.reads import find_allocation, node_row
from ..capacity.rows import PlacedAllocationRow
from ..capacity.states import SILENT, UNHEARD
from ..custody.vault import Vault
from ..iam.directory import get_principal
from ..iam.principals import principal_of, with_grants
from ..kit.rows import Query
from ..machine_access import ssh_sessions
from ..machine_access.certificates import check_enterable
from ..machine_access.errors import HostFenced
from ..machine_access.grants import LIVE
from ..machine_access.revocation import end_on_allocation
from ..machine_access.rows import Ended, GrantId, Reason
from ..operations.reads import live_targets
from ..tenancy.reads import project_scope
from .actions import fences
from .errors import MachineReports, MemberNotEnterable
from .reads import LEAVING, instance_row, live_operations, member_row, work_row
from .rows import InstanceRow, MemberRow, Work
from .schemas import OpenSshSession, SshSessionView
from .states import OF_INSTANCE, OF_MEMBER, REMOVE, REPLACE
from .tables import instances, members
from .transitions import instance_facts

ENTER = "apps.access.enter"
OBSERVATION, PERSON = "observation", "person"

_i, _m, _old = instances.c, members.c, members.alias("old").c
_work = live_targets(OF_MEMBER).c
# The allocations on which an operation of a member waits or runs: its own, and that of the member it replaces.
_WORKED_ON = union_all(
    select(_m.allocation_id).where(_m.id == _work.target_id, _m.state != "removed"),
    select(_old.allocation_id).where(
        _m.id == _work.target_id, _work.kind == REPLACE, _old.id == _m.replaces, _old.state != "removed"
    ),
).subquery("worked_on")

CHANGED = "an operation changes the instance it was given to look at"
WORK = "an operation works on its machine"
PARTED = "its machine is no longer part of the instance"
LEAVES = "the member leaves its machine"
RIGHT = "its holder may not enter machines any more"


def worked_on(allocation_id: ColumnElement[str] | str) -> ColumnElement[bool]:
    """Return an SQL condition that is true while an operation of a member on this allocation is queued or running."""
    return select(_WORKED_ON.c.allocation_id).where(_WORKED_ON.c.allocation_id == allocation_id).exists()


_changed = or_(_i.state != "running", _i.last_operation_id != LIVE.c.operation_id)
_busy = LIVE.c.allocation_id.in_(select(_WORKED_ON.c.allocation_id))
_parted = not_(held_by(LIVE.c.allocation_id, OF_INSTANCE, _i.id))
_UNOBSERVABLE = Query(
    select(LIVE.c.id.label("grant_id"), case((_changed, CHANGED), (_busy, WORK), else_=PARTED).label("reason"))
    .join(instances, _i.id == LIVE.c.subject_id)
    .where(LIVE.c.purpose == OBSERVATION, or_(_changed, _busy, _parted)),
    Ended,
)
_leaves = _m.state.in_(LEAVING)
_left = not_(held_by(LIVE.c.allocation_id, OF_INSTANCE, _m.instance_id))
_UNENTERABLE = Query(
    select(LIVE.c.id.label("grant_id"), case((_leaves, LEAVES), else_=PARTED).label("reason"))
    .join(members, _m.id == LIVE.c.subject_id)
    .where(LIVE.c.purpose == PERSON, or_(_leaves, _left)),
    Ended,
)


class _PersonOnMachine(NamedTuple):
    """A live grant of a person."""

    id: GrantId
    principal_id: PrincipalId
    project_id: ProjectId


_PEOPLE = Query(
    select(LIVE.c.id, LIVE.c.principal_id, LIVE.c.project_id).where(LIVE.c.purpose == PERSON), _PersonOnMachine
)


class ObservationPurpose:
    name = OBSERVATION
    renewable = True

    def ended(self, tx: Connection, now: int) -> Iterable[Ended]:
        return _UNOBSERVABLE.all(tx, now=now)


class PersonPurpose:
    name = PERSON
    renewable = False

    def ended(self, tx: Connection, now: int) -> Iterator[Ended]:
        yield from _UNENTERABLE.all(tx, now=now)
        may: dict[tuple[str, str], bool] = {}  # one decision per person and project
        for grant_id, person, project_id in _PEOPLE.all(tx, now=now):
            if (person, project_id) not in may:
                may[person, project_id] = _may_enter(tx, person, project_id, now)
            if not may[person, project_id]:
                yield Ended(grant_id, RIGHT)


def _may_enter(tx: Connection, person: str, project_id: str, now: int) -> bool:
    holder = with_grants(tx, principal_of(tx, get_principal(tx, person)), now)
    return decide(tx, holder, ENTER, project_scope(tx, project_id)).allowed


WITHOUT_EVIDENCE = "apps.operation.abandon"  # the machine is not seen clean, so this key is asked for, too


def check_gone(ctx: Context, member: MemberRow, *, lock: bool) -> None:
    """Raise an error unless the caller may declare the member's machine lost and the machine's agent does not report.
    Called before the instance is locked."""
    ctx.allow(WITHOUT_EVIDENCE)
    node = node_row(ctx.tx, member.node_id, lock=lock)
    if node.state not in UNHEARD:
        raise MachineReports(f"The machine {node.name!r} is {node.state}: its agent reports.")


def fence(ctx: Context, instance: InstanceRow, member: MemberRow, operation: Work, reason: str) -> None:
    end_on_allocation(ctx, member.allocation_id, "its machine was declared gone")
    facts = {"member_id": member.id, "component_key": member.component_key, "reason": reason}
    more = {"operation_id": operation.id, "allocation_id": member.allocation_id}
    ctx.emit("apps.member.fenced", member.id, instance_facts(instance) | facts | more)
    ctx.reason = f"{ctx.reason}; reason given: {reason}"


def check_not_fenced(tx: Connection, operation: Work, allocation_id: str) -> None:
    if allocation_id in fenced_by(tx, operation):
        raise HostFenced(f"The machine of {allocation_id!r} was declared gone.")


def fenced_by(tx: Connection, operation: Work) -> set[str]:
    """Return the allocation whose machine this operation fences; an empty set if it fences none. Not even the operation
    itself may access a fenced machine."""
    leaving = {REMOVE: operation.member_id, REPLACE: operation.old_member_id}.get(operation.kind)
    if not fences(operation) or leaving is None:
        return set()
    return {member_row(tx, operation.instance_id, leaving).allocation_id}


def open_session(
    ctx: Context, vault: Vault, project_id: str, instance_id: str, member_id: str, body: OpenSshSession
) -> SshSessionView:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id = member_id
    allocation = _enterable(ctx, instance, member)
    latest = work_row(ctx.tx, project_id, instance.last_operation_id or "")
    reason = Reason(
        purpose=PERSON,
        operation_id=latest.id,
        claim_epoch=latest.claim_epoch,
        subject_kind=OF_MEMBER,
        subject_id=member_id,
    )
    given, ends_at = ssh_sessions.open_session(ctx, vault, allocation, body, reason)
    facts = {"operation_id": latest.id, "claim_epoch": latest.claim_epoch, "allocation_id": allocation.id}
    facts |= {"grant_id": given.id, "member_id": member_id, "component_key": member.component_key}
    ctx.emit("apps.access.opened", given.id, instance_facts(instance) | facts)
    return SshSessionView.model_validate(given.model_dump() | {"member_id": member_id, "ends_at": ends_at})


def _enterable(ctx: Context, instance: InstanceRow, member: MemberRow) -> PlacedAllocationRow:
    """Return the member's allocation, or raise an error if a person cannot access the member's machine now."""
    if member.state in LEAVING:
        raise MemberNotEnterable(f"The member is {member.state}.")
    allocation = find_allocation(ctx.tx, member.allocation_id)
    if allocation is None or allocation.state != "active":
        raise MemberNotEnterable("The member's machine is not held by the project.")
    check_enterable(allocation)
    if allocation.node_state in SILENT:
        raise MemberNotEnterable(f"The machine {allocation.node_name!r} does not report.")
    for operation in live_operations(ctx.tx, instance.id):
        check_not_fenced(ctx.tx, operation, allocation.id)
    return allocation
