"""Allocates nodes to projects and releases them.
An allocation becomes active or released when the node reports that it has applied the change."""

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..authz.ids import TenantId
from ..catalog.reads import declared_backends
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.problems import NotFound
from ..policy.reads import overlays_for, require
from . import quotas, schemas
from .errors import NodeNotReady, NodeTaken, SchedulerTypeUnknown
from .holds import held, holders_of
from .node_selection import pick
from .reads import ALLOCATIONS, NODES, allocation_row, allocations_by_id, node_row
from .rows import AllocationId, AllocationRow, NodeRow, PlacedAllocationRow
from .states import ALLOCATION
from .tables import allocations, nodes, skus
from .trust import next_generation

declare(
    {
        "capacity.allocation.requested": "A project requested a node.",
        "capacity.allocation.active": (
            "An allocation became active: its node has confirmed the allocation, and apps can be placed on the node."
        ),
        "capacity.allocation.releasing": "An allocation is being released.",
        "capacity.allocation.released": (
            "An allocation was released: its node has ended all access through the allocation and is free."
        ),
        "capacity.allocation.extended": "The lease of an allocation was changed.",
        "capacity.allocation.integrated": "An app's controller stored metadata on an allocation.",
        "capacity.allocation.wiped": "The node was wiped after its allocation was released.",
        "capacity.allocation.wipe_failed": (
            "The wipe of a node failed, so the node is not free. `gpuaas node wipe` retries the wipe."
        ),
        "capacity.allocation.overdue": "The lease of an allocation has ended, but an instance still uses it.",
    }
)


_LOCKED = NODES.where(nodes.c.id == bindparam("node")).locked()
_WAITING = ALLOCATIONS.where(
    allocations.c.node_id == bindparam("node"),
    allocations.c.state.in_(["requested", "releasing"]),
    allocations.c.trust_generation <= bindparam("applied"),
).order_by(allocations.c.id)
# What rooms above this one do when an allocation is released (end the access, wipe the machine): registered by `api/`,
# run in the transaction of the release, with the allocation and the trust generation that removes it.
ReleaseStep = Callable[[Context, AllocationId, int], None]
_RELEASE_STEPS: list[ReleaseStep] = []
AT_ONCE = 200
_ENDABLE = [state for state in ALLOCATION.moves if ALLOCATION.allows(state, "release")]
_a = allocations.c
_DUE = (
    ALLOCATIONS.where(
        _a.expires_at <= bindparam("now"), _a.state.in_(_ENDABLE), ~(_a.overdue_since.is_not(None) & held(_a.id))
    )
    .order_by(_a.node_id)
    .limit(AT_ONCE)
)
CLEAN = (None, "done")  # values of `wipe` with which the node is free for other projects


def register_release_step(step: ReleaseStep) -> None:
    if step not in _RELEASE_STEPS:
        _RELEASE_STEPS.append(step)


def create_allocation(ctx: Context, project_id: str, body: schemas.CreateAllocation) -> PlacedAllocationRow:
    node = _LOCKED.first(ctx.tx, node=body.node_id)
    if node is None or node.tenant_id != ctx.scope.tenant_id:
        raise NotFound("The tenant has no such node.")
    if node.state != "ready":
        raise NodeNotReady(f"The node {node.name!r} is {node.state}.")
    _check_policy(ctx, node)
    allocation_id = ctx.resource_id = _hold(ctx, project_id, node, body.name or node.name, body)
    row = allocation_row(ctx.tx, project_id, allocation_id)
    quotas.take(ctx, project_id, allocations=1, gpus=row.gpus)
    return row


def request_allocations(ctx: Context, project_id: str, body: schemas.RequestAllocations) -> list[PlacedAllocationRow]:
    """Allocate the requested number of nodes of one kind, and return the allocations.
    Raises CapacityShort if too few are free."""
    picked = pick(ctx, body.want)
    ids = [_hold(ctx, project_id, node, _name(body.name, number, node), body) for number, node in enumerate(picked, 1)]
    ctx.resource_id = ids[0]
    rows = allocations_by_id(ctx.tx, project_id, ids)
    quotas.take(ctx, project_id, allocations=len(ids), gpus=sum(row.gpus for row in rows.values()))
    return [rows[allocation_id] for allocation_id in ids]


def _name(name: str | None, number: int, node: NodeRow) -> str:
    return f"{name[: 39 - len(str(number))]}-{number}" if name else node.name


def _hold(ctx: Context, project_id: str, node: NodeRow, name: str, terms: schemas.Terms) -> str:
    """Create the allocation of one node and return its id. Raises NodeTaken if the node has an allocation already. The
    caller counts the allocation against the project's quota."""
    _check_scheduler_type(ctx.tx, terms.scheduler_type)
    allocation_id = new_id("alloc")
    row: dict[str, object] = {
        "id": allocation_id,
        "project_id": project_id,
        "owner_kind": "project",
        "owner_id": project_id,
        "node_id": node.id,
        "name": name,
        "state": "requested",
        "scheduler_type": terms.scheduler_type,
        "integration_metadata": {},
        "trust_generation": next_generation(ctx.tx, node.id),
        "gpus": _gpus(ctx.tx, node),
        "lost_after_s": terms.lost_after_s,
        "expires_at": ctx.now + terms.expires_in_s * 1000 if terms.expires_in_s else None,
        "created_at": ctx.now,
        "updated_at": ctx.now,
    }
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(allocations).values(**row))
    except IntegrityError as error:
        raise NodeTaken(f"The node {node.name!r} is already held.") from error
    ctx.emit("capacity.allocation.requested", allocation_id, {"allocation_id": allocation_id, "node_id": node.id})
    ctx.notify(f"node:{node.id}")
    return allocation_id


def _check_scheduler_type(tx: Connection, wanted: str | None) -> None:
    if wanted is not None and wanted not in (known := declared_backends(tx)):
        raise SchedulerTypeUnknown(
            f"Unknown scheduler type {wanted!r}. Known: {', '.join(sorted(known)) or 'none yet'}."
        )


def integrate(ctx: Context, row: AllocationRow, integration: Json) -> PlacedAllocationRow:
    change = {"integration_metadata": integration, "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    ctx.emit("capacity.allocation.integrated", row.id, {"allocation_id": row.id, "node_id": row.node_id})
    return allocation_row(ctx.tx, row.project_id, row.id)


def _gpus(tx: Connection, node: NodeRow) -> int:
    """Return the number of GPUs of a node, from its SKU or, if that is unknown, from the node's own report."""
    promised = tx.execute(select(skus.c.gpu_count).where(skus.c.name == node.sku)).scalar()
    reported = node.facts.get("gpus", [])
    seen = len(reported) if isinstance(reported, list) else 0
    return seen if promised is None else promised


def _check_policy(ctx: Context, node: NodeRow) -> None:
    """Raise an error unless policy lets the project use the node's region and SKU."""
    overlays, cannot = overlays_for(ctx.tx, ctx.scope), f"The node {node.name!r} cannot be held"
    require(overlays, "regions", node.region, of=cannot)
    require(overlays, "skus", node.sku, of=cannot)


def release_allocation(ctx: Context, project_id: str, allocation_id: str) -> PlacedAllocationRow:
    """Start the release of an allocation. The caller has locked the allocation
    (`lock_allocation`) and checked that nothing uses it."""
    row = lock_allocation(ctx.tx, project_id, allocation_id)
    ctx.resource_id = allocation_id
    ALLOCATION.after(row.state, "release")
    generation = next_generation(ctx.tx, row.node_id)
    _move(ctx, row, "release", row.tenant_id, trust_generation=generation, overdue_since=None)
    for step in _RELEASE_STEPS:
        step(ctx, row.id, generation)
    ctx.notify(f"node:{row.node_id}")
    return allocation_row(ctx.tx, project_id, allocation_id)


def extend_allocation(
    ctx: Context, project_id: str, allocation_id: str, expires_in_s: int | None
) -> PlacedAllocationRow:
    row = lock_allocation(ctx.tx, project_id, allocation_id)
    ctx.resource_id = allocation_id
    ALLOCATION.after(row.state, "release")  # raises if the allocation can no longer be released
    expires_at = ctx.now + expires_in_s * 1000 if expires_in_s else None
    change = {"expires_at": expires_at, "overdue_since": None, "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == allocation_id).values(**change))
    facts = {"allocation_id": allocation_id, "node_id": row.node_id, "expires_at": expires_at}
    ctx.emit("capacity.allocation.extended", allocation_id, facts)
    return allocation_row(ctx.tx, project_id, allocation_id)


def mark_overdue(ctx: Context, row: PlacedAllocationRow) -> None:
    """Mark an allocation in use as overdue, because its lease has ended.
    It is released once it is unused, unless the lease is extended."""
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(overdue_since=ctx.now))
    facts = {"allocation_id": row.id, "node_id": row.node_id, "expires_at": row.expires_at}
    ctx.emit("capacity.allocation.overdue", row.id, facts, scope=_scope(row, row.tenant_id))


def lock_allocation(tx: Connection, project_id: str, allocation_id: str) -> PlacedAllocationRow:
    """Lock the allocation and its node, and return the allocation. Until the transaction ends, nothing is placed on the
    allocation and no report of the node is applied."""
    row = allocation_row(tx, project_id, allocation_id)
    node_row(tx, row.node_id, lock=True)
    return allocation_row(tx, project_id, allocation_id, lock=True)


def settle(ctx: Context, node: NodeRow, applied: int) -> None:
    """Complete the changes that waited for the node to apply this trust generation: requested allocations become
    active, and releasing ones released, unless their node must be wiped first."""
    for row in _WAITING.all(ctx.tx, node=node.id, applied=applied):
        if row.state == "requested":
            _move(ctx, row, "realize", node.tenant_id)
        elif row.wipe in CLEAN:
            finish(ctx, row, node.tenant_id)


def await_wipe(ctx: Context, allocation_id: str) -> None:
    """Mark a releasing allocation as waiting for a wipe.
    Its node becomes free only when the node reports that it was wiped."""
    ctx.tx.execute(update(allocations).where(allocations.c.id == allocation_id).values(wipe="pending"))


def wiped(ctx: Context, node: NodeRow, row: AllocationRow, *, clean: bool, reason: str) -> None:
    """Record the result of a wipe and, if the node is clean, finish the release; otherwise the node stays held. The
    caller has locked the node and the allocation."""
    if row.state != "releasing" or row.wipe in CLEAN:
        return
    change = {"wipe": "done" if clean else "failed", "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    facts = {"allocation_id": row.id, "node_id": node.id, "reason": reason}
    event = "capacity.allocation.wiped" if clean else "capacity.allocation.wipe_failed"
    ctx.emit(event, row.id, facts, scope=_scope(row, node.tenant_id))
    if clean and row.trust_generation <= node.trust_applied:
        finish(ctx, row, node.tenant_id)


def finish(ctx: Context, row: AllocationRow, tenant_id: TenantId) -> None:
    _move(ctx, row, "finish", tenant_id)
    quotas.give_back(ctx.tx, row.project_id, row.gpus, ctx.now)


def _move(ctx: Context, row: AllocationRow, action: str, tenant_id: TenantId, **more: int | None) -> None:
    state = ALLOCATION.after(row.state, action)
    change: Mapping[str, str | int | None] = {"state": state, "updated_at": ctx.now} | more
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    facts = {"allocation_id": row.id, "node_id": row.node_id}
    ctx.emit(f"capacity.allocation.{state}", row.id, facts, scope=_scope(row, tenant_id))


def _scope(row: AllocationRow, tenant_id: TenantId) -> Scope:
    chain = (("project", row.project_id), ("tenant", tenant_id), PLATFORM)
    return Scope(chain, tenant_id=tenant_id, project_id=row.project_id)


def end_leases(ctx: Context) -> int:
    """Release the allocations whose lease has ended, or mark them as overdue if they are in use; return how many.
    Called by housekeeping."""
    rows = _DUE.all(ctx.tx, now=ctx.now)
    for row in rows:
        _end_lease(ctx, row)
    return len(rows)


def _end_lease(ctx: Context, due: AllocationRow) -> None:
    row = lock_allocation(ctx.tx, due.project_id, due.id)
    if row.state not in _ENDABLE or row.expires_at is None or row.expires_at > ctx.now:
        return  # another request released or extended it meanwhile
    if not holders_of(ctx.tx, [row.id]):
        release_allocation(ctx, row.project_id, row.id)
        ctx.note_own(Scope(tenant_id=row.tenant_id, project_id=row.project_id), row.id, "its lease has ended")
    elif row.overdue_since is None:
        mark_overdue(ctx, row)
