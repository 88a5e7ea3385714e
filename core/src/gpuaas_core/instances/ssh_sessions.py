"""A person on a member's machine: a certificate for a key made for this one connection, and what ends it.

It opens for five minutes; the session lasts longer, and ends with whatever it rests on: the right of whoever asked, the
member, the allocation (`access.revoke_stale` looks every second), and at the latest after a working day, which the
machine sees to by itself. Its principal is not the controllers': on the machine it makes of a person a user who may
change nothing there.
"""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..capacity.errors import NodeSuspended
from ..capacity.reads import allocations_by_id
from ..capacity.states import SILENT
from ..capacity.trust import people_of
from ..custody.vault import Vault
from . import certificates
from .access_schemas import OpenSshSession, SshSessionView
from .errors import MemberNotEnterable
from .fencing import check_not_fenced
from .reads import LEAVING, instance_row, live_operations, member_row, work_row
from .transitions import instance_facts

LASTS_S = 8 * 3600  # machines end a session after this long, from when it began (the agent's people.py)


def open_session(
    ctx: Context, vault: Vault, project_id: str, instance_id: str, member_id: str, body: OpenSshSession
) -> SshSessionView:
    instance = instance_row(ctx.tx, project_id, instance_id, lock=True)
    member = member_row(ctx.tx, instance_id, member_id)
    ctx.resource_id = member_id
    allocation = _enterable(ctx, instance, member)
    latest = work_row(ctx.tx, project_id, instance.last_operation_id)
    of = {"operation_id": latest.id, "claim_epoch": latest.claim_epoch, "allocation_id": allocation.id}
    ends_at = ctx.now + (certificates.OPENS_S + LASTS_S) * 1000
    given = certificates.certify(
        ctx,
        vault,
        allocation,
        body,
        principal=people_of(allocation.id),
        key_id=f"{ctx.principal.id}/1",
        book=of | {"purpose": certificates.PERSON, "member_id": member_id, "ends_at": ends_at},
    )
    facts = of | {"grant_id": given.id, "member_id": member_id, "component_key": member.component_key}
    ctx.emit("apps.access.opened", given.id, instance_facts(instance) | facts)
    return SshSessionView.model_validate(given.model_dump() | {"member_id": member_id, "ends_at": ends_at})


def _enterable(ctx: Context, instance: Row[Any], member: Row[Any]) -> Row[Any]:
    """Its allocation, if somebody can get in there now."""
    if member.state in LEAVING:
        raise MemberNotEnterable(f"The member is {member.state}.")
    allocation = allocations_by_id(ctx.tx, instance.project_id, [member.allocation_id]).get(member.allocation_id)
    if allocation is None or allocation.state != "active":
        raise MemberNotEnterable("The member's machine is not held by the project.")
    if allocation.node_state == "suspended":
        raise NodeSuspended(f"The machine {allocation.node_name!r} is suspended; nobody is let onto it.")
    if allocation.node_state in SILENT:
        raise MemberNotEnterable(f"The machine {allocation.node_name!r} does not report.")
    for operation in live_operations(ctx.tx, instance.id):
        check_not_fenced(ctx, operation, allocation.id)
    return allocation
