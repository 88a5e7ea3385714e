"""Invite, enrol and hear machines; hold and release them for projects."""

import hmac
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..access.context import Context
from ..access.evaluate import PLATFORM, Scope
from ..access.permissions import NODE_AGENT
from ..custody import authorities
from ..custody.vault import Vault
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.wire import canonical
from ..ledger import requests
from ..ledger.events import declare
from ..policy.reads import overlays_for, require
from ..tenancy import identity, records
from . import schemas
from .errors import EnrolmentTokenInvalid, NodeNameTaken, NodeNotReady, NodeTaken
from .reads import allocation_row, node_row, node_scope
from .states import ALLOCATION, NODE
from .tables import allocations, enrolments, nodes
from .trust import next_generation

declare(
    {
        "capacity.enrolment.created": "A machine is invited with a one-time token.",
        "capacity.node.enrolled": "A machine joined the tenant with its own identity.",
        "capacity.node.ready": "A machine reports and can be allocated.",
        "capacity.node.unknown": "A machine has not reported for too long.",
        "capacity.allocation.requested": "A project asks to hold a machine.",
        "capacity.allocation.active": "The machine trusts the project's allocation; apps may be placed on it.",
        "capacity.allocation.releasing": "An allocation is being given back.",
        "capacity.allocation.released": "The machine no longer trusts the allocation; it is free.",
    }
)

ENROLMENT_S = 600
HEARTBEAT_S = 10
UNKNOWN_AFTER_MS = 45_000


def create_enrolment(ctx: Context, vault: Vault, tenant_id: str, body: schemas.CreateEnrolment) -> dict[str, Any]:
    taken = select(nodes.c.id).where(nodes.c.tenant_id == tenant_id, nodes.c.name == body.node_name)
    if ctx.tx.execute(taken).first():
        raise NodeNameTaken(f"The tenant has a machine named {body.node_name!r}.")
    authorities.ensure_authorities(ctx.tx, vault, tenant_id, ctx.now)
    row = {"id": new_id("enr"), "tenant_id": tenant_id, "node_name": body.node_name, "labels": body.labels}
    where = {"region": body.region, "sku": body.sku}
    ctx.tx.execute(
        insert(enrolments).values(**row, **where, expires_at=ctx.now + ENROLMENT_S * 1000, created_at=ctx.now)
    )
    ctx.resource_id = row["id"]
    ctx.emit("capacity.enrolment.created", row["id"], {"node_name": body.node_name})
    return {"id": row["id"], "node_name": body.node_name, "expires_in": ENROLMENT_S, "enrol_url_path": "/v1/enrol"}


def enrolment_token(vault: Vault, enrolment_id: str) -> str:
    """Computed, never stored: whoever holds it holds a keyed fingerprint of the enrolment."""
    return f"{enrolment_id}.{vault.mac(enrolment_id)}"


def check_token(tx: Connection, vault: Vault, token: str, now: int) -> Row[Any]:
    enrolment_id, _, _ = token.partition(".")
    row = tx.execute(select(enrolments).where(enrolments.c.id == enrolment_id).with_for_update()).first()
    good = hmac.compare_digest(enrolment_token(vault, enrolment_id).encode(), token.encode())
    if row is None or not good or row.expires_at <= now:
        raise EnrolmentTokenInvalid("This token is unknown or has expired.")
    return row


def enrol(ctx: Context, vault: Vault, body: schemas.Enrol, seen_address: str) -> Row[Any]:
    """Once per token. The same machine with the same key may repeat it (its first answer was lost)."""
    invitation = check_token(ctx.tx, vault, body.token, ctx.now)
    jwk = identity.check_public_jwk(body.public_jwk)
    fingerprint = requests.fingerprint("enrol", body.facts.machine_id, canonical(jwk))
    if invitation.used_by_node:
        if invitation.used_fingerprint == fingerprint:
            return node_row(ctx.tx, invitation.used_by_node)
        raise EnrolmentTokenInvalid("This token was used by another machine.")
    node_id = _add_node(ctx, vault, invitation, body, jwk, seen_address)
    used = {"used_by_node": node_id, "used_fingerprint": fingerprint}
    ctx.tx.execute(update(enrolments).where(enrolments.c.id == invitation.id).values(**used))
    return node_row(ctx.tx, node_id)


def _add_node(
    ctx: Context, vault: Vault, invitation: Row[Any], body: schemas.Enrol, jwk: dict[str, Any], seen_address: str
) -> str:
    node_id = ctx.resource_id = new_id("node")
    tenant_id = invitation.tenant_id
    certificate = authorities.sign_host(
        ctx.tx, vault, tenant_id, key_line=body.ssh_host_public_key, node_id=node_id, now=ctx.now
    )
    row = {
        "id": node_id,
        "tenant_id": tenant_id,
        "name": invitation.node_name,
        "state": "enrolling",
        "address": body.address or seen_address,
        "ssh_port": body.ssh_port,
        "ssh_host_public_key": body.ssh_host_public_key,
        "host_certificate": certificate.text,
        "labels": invitation.labels,
        "region": invitation.region,
        "sku": invitation.sku,
        "facts": body.facts.model_dump(),
        "trust_generation": 1,
        "trust_applied": 0,
        "last_seen_at": ctx.now,
        "created_at": ctx.now,
    }
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(nodes).values(**row))
    except IntegrityError as error:
        raise NodeNameTaken(f"The tenant has a machine named {invitation.node_name!r}.") from error
    records.add_machine_principal(ctx.tx, node_id, row["name"], tenant_id, jwk, NODE_AGENT, ctx.now)
    ctx.scope = Scope((("node", node_id), ("tenant", tenant_id), PLATFORM), tenant_id=tenant_id)
    ctx.emit("capacity.node.enrolled", node_id, {"node_name": row["name"], "address": row["address"]})
    return node_id


def trust_applied(ctx: Context, node_id: str, generation: int) -> Row[Any]:
    node = node_row(ctx.tx, node_id, lock=True)
    applied = min(generation, node.trust_generation)
    if applied > node.trust_applied:
        ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(trust_applied=applied))
        _settle_allocations(ctx, node, applied)
    _seen(ctx, node)
    return node_row(ctx.tx, node_id)


def heartbeat(ctx: Context, node_id: str, body: schemas.Heartbeat) -> None:
    node = node_row(ctx.tx, node_id, lock=True)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(facts=body.facts.model_dump()))
    _seen(ctx, node)


def _seen(ctx: Context, node: Row[Any]) -> None:
    applied = ctx.tx.execute(select(nodes.c.trust_applied).where(nodes.c.id == node.id)).scalar_one()
    state = NODE.after(node.state, "report") if applied else node.state
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(last_seen_at=ctx.now, state=state))
    if state != node.state and state == "ready":
        ctx.emit("capacity.node.ready", node.id, {"node_name": node.name})


def lose_silent_nodes(ctx: Context) -> int:
    silent = select(nodes).where(
        nodes.c.state.in_(["ready", "cordoned"]), nodes.c.last_seen_at < ctx.now - UNKNOWN_AFTER_MS
    )
    lost = ctx.tx.execute(silent.order_by(nodes.c.id).with_for_update(key_share=True, skip_locked=True)).all()
    for node in lost:
        change = {"state": NODE.after(node.state, "lose")}
        ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**change))
        ctx.emit("capacity.node.unknown", node.id, {"node_name": node.name}, scope=node_scope(ctx.tx, node.id))
    return len(lost)


def _settle_allocations(ctx: Context, node: Row[Any], applied: int) -> None:
    waiting = select(allocations).where(
        allocations.c.node_id == node.id,
        allocations.c.state.in_(["requested", "releasing"]),
        allocations.c.trust_generation <= applied,
    )
    for row in ctx.tx.execute(waiting).all():
        _move_allocation(ctx, row, "realize" if row.state == "requested" else "finish", node.tenant_id)


def _move_allocation(ctx: Context, row: Row[Any], action: str, tenant_id: str, **more: Any) -> None:
    state = ALLOCATION.after(row.state, action)
    change = {"state": state, "updated_at": ctx.now} | more
    ctx.tx.execute(update(allocations).where(allocations.c.id == row.id).values(**change))
    chain = (("project", row.project_id), ("tenant", tenant_id), PLATFORM)
    scope = Scope(chain, tenant_id=tenant_id, project_id=row.project_id)
    ctx.emit(f"capacity.allocation.{state}", row.id, {"allocation_id": row.id, "node_id": row.node_id}, scope=scope)


def create_allocation(ctx: Context, project_id: str, body: schemas.CreateAllocation) -> Row[Any]:
    held = select(nodes).where(nodes.c.id == body.node_id).with_for_update(key_share=True)
    node = ctx.tx.execute(held).first()
    if node is None or node.tenant_id != ctx.scope.tenant_id:
        raise NotFound("There is no such machine in this tenant.")
    if node.state != "ready":
        raise NodeNotReady(f"The machine {node.name!r} is {node.state}.")
    _check_policy(ctx, node)
    allocation_id = ctx.resource_id = new_id("alloc")
    row = {
        "id": allocation_id,
        "project_id": project_id,
        "node_id": node.id,
        "name": body.name or node.name,
        "state": "requested",
        "integration_metadata": {},
        "trust_generation": next_generation(ctx.tx, node.id),
        "created_at": ctx.now,
        "updated_at": ctx.now,
    }
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(allocations).values(**row))
    except IntegrityError as error:
        raise NodeTaken(f"The machine {node.name!r} is held already.") from error
    ctx.emit("capacity.allocation.requested", allocation_id, {"allocation_id": allocation_id, "node_id": node.id})
    ctx.ring(f"node:{node.id}")
    return allocation_row(ctx.tx, project_id, allocation_id)


def _check_policy(ctx: Context, node: Row[Any]) -> None:
    """Whether policy lets the project hold this machine: by where it stands and what it is."""
    overlays, cannot = overlays_for(ctx.tx, ctx.scope), f"The machine {node.name!r} cannot be held"
    require(overlays, "regions", node.region, of=cannot)
    require(overlays, "skus", node.sku, of=cannot)


def release_allocation(ctx: Context, project_id: str, allocation_id: str) -> Row[Any]:
    """Whether something still runs on it is asked by the instances room, under the lock of `hold_allocation`."""
    row = hold_allocation(ctx, project_id, allocation_id)
    ctx.resource_id = allocation_id
    ALLOCATION.after(row.state, "release")
    generation = next_generation(ctx.tx, row.node_id)
    _move_allocation(ctx, row, "release", str(ctx.scope.tenant_id), trust_generation=generation)
    ctx.ring(f"node:{row.node_id}")
    return allocation_row(ctx.tx, project_id, allocation_id)


def hold_allocation(ctx: Context, project_id: str, allocation_id: str) -> Row[Any]:
    """Locked with its machine: nothing is put on it, and the machine reports nothing about it, until we are done."""
    row = allocation_row(ctx.tx, project_id, allocation_id)
    node_row(ctx.tx, row.node_id, lock=True)
    return allocation_row(ctx.tx, project_id, allocation_id, lock=True)
