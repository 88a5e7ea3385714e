"""A member whose machine is gone for good: fenced first, then taken out by its app from everywhere but that machine.

From the moment it is asked for, nobody gets onto the machine for this instance, and whoever had access has none. The
app works on all the other members meanwhile (they must stop trusting the machine), so nothing else goes on beside it.
The machine was not cleaned, so its record says: nothing new is placed there until somebody has looked.
"""

from typing import Any

from sqlalchemy import Row, select

from ..authz.context import Context
from ..capacity.reads import node_row
from ..capacity.revocation import revoke
from ..capacity.states import UNHEARD
from ..custody import grants
from ..custody.tables import access_grants
from .actions import fences
from .errors import HostFenced, MachineReports
from .reads import member_row
from .states import REMOVE, REPLACE
from .transitions import instance_facts
from .work import Work

WITHOUT_EVIDENCE = "apps.operation.abandon"  # nobody will have seen the machine clean, so this key is asked for, too


def check_gone(ctx: Context, member: Row[Any], *, lock: bool) -> None:
    """Before the instance is locked. A machine that speaks is not gone, whatever somebody says."""
    ctx.allow(WITHOUT_EVIDENCE)
    node = node_row(ctx.tx, member.node_id, lock=lock)
    if node.state not in UNHEARD:
        raise MachineReports(f"The machine {node.name!r} is {node.state}: its agent reports.")


def fence(ctx: Context, instance: Row[Any], member: Row[Any], operation: Work, reason: str) -> None:
    mine = (access_grants.c.allocation_id == member.allocation_id) & grants.live(ctx.now)
    revoke(
        ctx,
        ctx.tx.execute(select(access_grants).where(mine).order_by(access_grants.c.id)).all(),
        "its machine was declared gone",
    )
    facts = {"member_id": member.id, "component_key": member.component_key, "reason": reason}
    more = {"operation_id": operation.id, "allocation_id": member.allocation_id}
    ctx.emit("apps.member.fenced", member.id, instance_facts(instance) | facts | more)
    ctx.reason = f"{ctx.reason}; reason given: {reason}"


def check_not_fenced(ctx: Context, operation: Work, allocation_id: str) -> None:
    """Not even the operation that takes it out gets onto the machine: it may be up again, with nobody's knowledge."""
    leaving = {REMOVE: operation.member_id, REPLACE: operation.old_member_id}.get(operation.kind)
    if not fences(operation) or leaving is None:
        return
    if member_row(ctx.tx, operation.instance_id, leaving).allocation_id == allocation_id:
        raise HostFenced(f"The machine of {allocation_id!r} was declared gone.")
