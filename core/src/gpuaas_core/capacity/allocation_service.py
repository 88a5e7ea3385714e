"""Allocate nodes to projects, and release them. The node's report makes an allocation active or released."""

from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..catalog.reads import declared_backends
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..policy.reads import overlays_for, require
from . import quotas, revocation, schemas
from .errors import NodeNotReady, NodeTaken, SchedulerTypeUnknown
from .node_selection import pick
from .reads import allocation_row, allocations_by_id, node_row
from .states import ALLOCATION
from .tables import allocations, nodes, skus
from .trust import next_generation

declare(
    {
        "capacity.allocation.requested": "A project requested a node.",
        "capacity.allocation.active": "The node trusts the project's allocation; apps may be placed on it.",
        "capacity.allocation.releasing": "An allocation is being released.",
        "capacity.allocation.released": "The node no longer trusts the allocation; it is free.",
        "capacity.allocation.extended": "The lease of an allocation was changed.",
        "capacity.allocation.integrated": "An app's controller stored metadata on an allocation.",
        "capacity.allocation.wiped": "The node was wiped after an allocation.",
        "capacity.allocation.wipe_failed": "Wiping a node failed, so it stays held: `gpuaas node wipe`.",
        "capacity.allocation.overdue": "The lease of an allocation has ended, but an instance still uses it.",
    }
)


CLEAN = (None, "done")  # values of `wipe` with which the node is free for other projects


def create_allocation(ctx: Context, project_id: str, body: schemas.CreateAllocation) -> Row[Any]:
    held = select(nodes).where(nodes.c.id == body.node_id).with_for_update(key_share=True)
    node = ctx.tx.execute(held).first()
    if node is None or node.tenant_id != ctx.scope.tenant_id:
        raise NotFound("The tenant has no such node.")
    if node.state != "ready":
        raise NodeNotReady(f"The node {node.name!r} is {node.state}.")
    _check_policy(ctx, node)
    allocation_id = ctx.resource_id = _hold(ctx, project_id, node, body.name or node.name, body)
    row = allocation_row(ctx.tx, project_id, allocation_id)
    quotas.take(ctx, project_id, allocations=1, gpus=row.gpus)
    return row


def request_allocations(ctx: Context, project_id: str, body: schemas.RequestAllocations) -> list[Row[Any]]:
    """As many nodes of a kind as requested, or none."""
    picked = pick(ctx, body.want)
    ids = [_hold(ctx, project_id, node, _name(body.name, number, node), body) for number, node in enumerate(picked, 1)]
    ctx.resource_id = ids[0]
    rows = allocations_by_id(ctx.tx, project_id, ids)
    quotas.take(ctx, project_id, allocations=len(ids), gpus=sum(row.gpus for row in rows.values()))
    return [rows[allocation_id] for allocation_id in ids]


def _name(name: str | None, number: int, node: Row[Any]) -> str:
    return f"{name[: 39 - len(str(number))]}-{number}" if name else node.name


def _hold(ctx: Context, project_id: str, node: Row[Any], name: str, terms: schemas.Terms) -> str:
    """The caller counts the allocation against the project's quota."""
    _check_scheduler_type(ctx.tx, terms.scheduler_type)
    allocation_id = new_id("alloc")
    row = {
        "id": allocation_id,
        "project_id": project_id,
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


def integrate(ctx: Context, row: Row[Any], integration: dict[str, Any]) -> Row[Any]:
    change = {"integration_metadata": integration, "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    ctx.emit("capacity.allocation.integrated", row.id, {"allocation_id": row.id, "node_id": row.node_id})
    return allocation_row(ctx.tx, row.project_id, row.id)


def _gpus(tx: Connection, node: Row[Any]) -> int:
    """From its SKU; from the node's own report where the SKU is unknown."""
    promised = tx.execute(select(skus.c.gpu_count).where(skus.c.name == node.sku)).scalar()
    return len(node.facts.get("gpus", [])) if promised is None else promised


def _check_policy(ctx: Context, node: Row[Any]) -> None:
    """Whether policy lets the project hold this node, by its region and SKU."""
    overlays, cannot = overlays_for(ctx.tx, ctx.scope), f"The node {node.name!r} cannot be held"
    require(overlays, "regions", node.region, of=cannot)
    require(overlays, "skus", node.sku, of=cannot)


def release_allocation(ctx: Context, project_id: str, allocation_id: str) -> Row[Any]:
    """The instances room checks whether something still uses it, under the lock of `hold_allocation`."""
    row = hold_allocation(ctx, project_id, allocation_id)
    ctx.resource_id = allocation_id
    ALLOCATION.after(row.state, "release")
    generation = next_generation(ctx.tx, row.node_id)
    revocation.of_allocation(ctx, allocation_id, generation)
    _move(ctx, row, "release", row.tenant_id, trust_generation=generation, overdue_since=None)
    ctx.notify(f"node:{row.node_id}")
    return allocation_row(ctx.tx, project_id, allocation_id)


def extend_allocation(ctx: Context, project_id: str, allocation_id: str, expires_in_s: int | None) -> Row[Any]:
    row = hold_allocation(ctx, project_id, allocation_id)
    ctx.resource_id = allocation_id
    ALLOCATION.after(row.state, "release")  # raises if the allocation can no longer be released
    expires_at = ctx.now + expires_in_s * 1000 if expires_in_s else None
    change = {"expires_at": expires_at, "overdue_since": None, "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == allocation_id).values(**change))
    facts = {"allocation_id": allocation_id, "node_id": row.node_id, "expires_at": expires_at}
    ctx.emit("capacity.allocation.extended", allocation_id, facts)
    return allocation_row(ctx.tx, project_id, allocation_id)


def mark_overdue(ctx: Context, row: Row[Any]) -> None:
    """Emitted once; the allocation is released as soon as nothing uses it, unless it is extended."""
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(overdue_since=ctx.now))
    facts = {"allocation_id": row.id, "node_id": row.node_id, "expires_at": row.expires_at}
    ctx.emit("capacity.allocation.overdue", row.id, facts, scope=_scope(row, row.tenant_id))


def hold_allocation(ctx: Context, project_id: str, allocation_id: str) -> Row[Any]:
    """Locked with its node: until the transaction ends nothing is placed on it and no report about it is applied."""
    row = allocation_row(ctx.tx, project_id, allocation_id)
    node_row(ctx.tx, row.node_id, lock=True)
    return allocation_row(ctx.tx, project_id, allocation_id, lock=True)


def settle(ctx: Context, node: Row[Any], applied: int) -> None:
    """The node applied trust up to this generation: allocations that waited for it advance."""
    waiting = select(allocations).where(
        allocations.c.node_id == node.id,
        allocations.c.state.in_(["requested", "releasing"]),
        allocations.c.trust_generation <= applied,
    )
    for row in ctx.tx.execute(waiting.order_by(allocations.c.id)).all():
        if row.state == "requested":
            _move(ctx, row, "realize", node.tenant_id)
        elif row.wipe in CLEAN:
            finish(ctx, row, node.tenant_id)


def await_wipe(ctx: Context, allocation_id: str) -> None:
    """A releasing allocation frees its node only when the node reports that it was wiped."""
    ctx.tx.execute(update(allocations).where(allocations.c.id == allocation_id).values(wipe="pending"))


def wiped(ctx: Context, node: Row[Any], row: Row[Any], *, clean: bool, reason: str) -> None:
    """The caller has locked node and allocation. A node that is not clean stays held."""
    if row.state != "releasing" or row.wipe in CLEAN:
        return
    change = {"wipe": "done" if clean else "failed", "updated_at": ctx.now}
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    facts = {"allocation_id": row.id, "node_id": node.id, "reason": reason}
    event = "capacity.allocation.wiped" if clean else "capacity.allocation.wipe_failed"
    ctx.emit(event, row.id, facts, scope=_scope(row, node.tenant_id))
    if clean and row.trust_generation <= node.trust_applied:
        finish(ctx, row, node.tenant_id)


def finish(ctx: Context, row: Row[Any], tenant_id: str) -> None:
    _move(ctx, row, "finish", tenant_id)
    quotas.give_back(ctx.tx, row.project_id, row.gpus, ctx.now)


def _move(ctx: Context, row: Row[Any], action: str, tenant_id: str, **more: Any) -> None:
    state = ALLOCATION.after(row.state, action)
    change = {"state": state, "updated_at": ctx.now} | more
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    facts = {"allocation_id": row.id, "node_id": row.node_id}
    ctx.emit(f"capacity.allocation.{state}", row.id, facts, scope=_scope(row, tenant_id))


def _scope(row: Row[Any], tenant_id: str) -> Scope:
    chain = (("project", row.project_id), ("tenant", tenant_id), PLATFORM)
    return Scope(chain, tenant_id=tenant_id, project_id=row.project_id)
