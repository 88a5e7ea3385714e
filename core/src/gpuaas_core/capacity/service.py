"""Invite and enrol nodes, and process their reports. `standing` moves their states, `allocating` holds them."""

import hmac
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..authz.permissions import NODE_AGENT
from ..custody import authorities
from ..custody.vault import Vault
from ..events.event_log import declare
from ..idempotency import requests
from ..identity import assertions, node_keys, node_principals
from ..kit.ids import new_id
from ..kit.wire import canonical
from . import allocation_service, node_admin, readmission, schemas
from .errors import EnrolmentTokenInvalid, NodeNameTaken
from .node_selection import pool_row
from .reads import node_row
from .tables import enrolments, nodes
from .trust import believable, knows_more, tell_anew

declare(
    {
        "capacity.enrolment.created": "A node was invited with a one-time token.",
        "capacity.node.enrolled": "A node was enrolled with its own identity.",
    }
)

ENROLMENT_S = 600
HEARTBEAT_S = 10


def create_enrolment(ctx: Context, vault: Vault, tenant_id: str, body: schemas.CreateEnrolment) -> dict[str, Any]:
    mine = (nodes.c.tenant_id == tenant_id) & (nodes.c.state != "retired")
    if ctx.tx.execute(select(nodes.c.id).where(mine, nodes.c.name == body.node_name)).first():
        raise NodeNameTaken(f"The tenant already has a node named {body.node_name!r}.")
    if body.pool is not None:
        pool_row(ctx.tx, tenant_id, body.pool, lock=True)
    authorities.ensure_authorities(ctx.tx, vault, tenant_id, ctx.now)
    row = {"tenant_id": tenant_id, "node_name": body.node_name, "labels": body.labels}
    return _invite(ctx, row | {"region": body.region, "sku": body.sku, "pool": body.pool})


def readmit(ctx: Context, node_id: str, reason: str) -> dict[str, Any]:
    """A token with which the machine rejoins as the same node with a new identity; the current identity ends then."""
    node = node_row(ctx.tx, node_id, lock=True)
    if problem := node_admin.refusal(ctx.tx, node, "readmit"):
        raise problem
    row = {"tenant_id": node.tenant_id, "node_name": node.name, "node_id": node.id, "labels": node.labels}
    invited = _invite(ctx, row | {"region": node.region, "sku": node.sku, "pool": node.pool})
    ctx.resource_id = node_id
    ctx.emit("capacity.node.readmitted", node_id, {"node_name": node.name, "state": node.state, "reason": reason})
    return invited


def _invite(ctx: Context, row: dict[str, Any]) -> dict[str, Any]:
    enrolment_id = ctx.resource_id = new_id("enr")
    when = {"expires_at": ctx.now + ENROLMENT_S * 1000, "created_at": ctx.now}
    ctx.tx.execute(insert(enrolments).values(id=enrolment_id, **row, **when))
    ctx.emit("capacity.enrolment.created", enrolment_id, {"node_name": row["node_name"]})
    return {
        "id": enrolment_id,
        "node_name": row["node_name"],
        "expires_in": ENROLMENT_S,
        "enrol_url_path": "/v1/enrol",
    }


def enrolment_token(vault: Vault, enrolment_id: str) -> str:
    """Computed, never stored: the token is a keyed fingerprint of the enrolment."""
    return f"{enrolment_id}.{vault.mac(enrolment_id)}"


def check_token(tx: Connection, vault: Vault, token: str, now: int) -> Row[Any]:
    enrolment_id, _, _ = token.partition(".")
    row = tx.execute(select(enrolments).where(enrolments.c.id == enrolment_id).with_for_update()).first()
    good = hmac.compare_digest(enrolment_token(vault, enrolment_id).encode(), token.encode())
    if row is None or not good or row.expires_at <= now:
        raise EnrolmentTokenInvalid("The enrolment token is unknown or has expired.")
    return row


def close_enrolments(tx: Connection, now: int) -> int:
    """After a restore: a token that was used since the backup must not work again."""
    open_ones = enrolments.c.used_by_node.is_(None) & (enrolments.c.expires_at > now)
    return tx.execute(update(enrolments).where(open_ones).values(expires_at=now)).rowcount


def enrol(ctx: Context, vault: Vault, body: schemas.Enrol, seen_address: str) -> Row[Any]:
    """Once per token. The same machine with the same key may repeat it (if its first answer was lost)."""
    invitation = check_token(ctx.tx, vault, body.token, ctx.now)
    jwk = assertions.check_public_jwk(body.public_jwk)
    fingerprint = requests.fingerprint("enrol", body.facts.machine_id, canonical(jwk))
    if invitation.used_by_node:
        node = node_row(ctx.tx, invitation.used_by_node)
        if invitation.used_fingerprint == fingerprint and node.state != "retired":
            return node
        raise EnrolmentTokenInvalid("The enrolment token was used by another machine.", reused=invitation.id)
    add = readmission.rejoin if invitation.node_id else _add_node
    node_id = add(ctx, vault, invitation, body, jwk, seen_address)
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
        "standing": "ready",
        "address": body.address or seen_address,
        "ssh_port": body.ssh_port,
        "ssh_host_public_key": body.ssh_host_public_key,
        "host_certificate": certificate.text,
        "host_authority": certificate.authority,
        "host_certified_until": ctx.now + certificate.lives_s * 1000,
        "labels": invitation.labels,
        "region": invitation.region,
        "sku": invitation.sku,
        "pool": invitation.pool,
        "facts": body.facts.model_dump(),
        "trust_generation": 1,
        "trust_applied": 0,
        "last_seen_at": ctx.now,
        "created_at": ctx.now,
    }
    ctx.scope = Scope((("node", node_id), ("tenant", tenant_id), PLATFORM), tenant_id=tenant_id)
    for former in readmission.same_machine(ctx.tx, tenant_id, body):
        node_admin.replace(ctx, former, row["name"])
    try:
        with ctx.tx.begin_nested():
            ctx.tx.execute(insert(nodes).values(**row))
    except IntegrityError as error:
        raise NodeNameTaken(f"The tenant already has a node named {invitation.node_name!r}.") from error
    origin = readmission.origin(body.facts)
    node_principals.add_node_principal(ctx.tx, node_id, row["name"], tenant_id, jwk, origin, NODE_AGENT, ctx.now)
    ctx.emit("capacity.node.enrolled", node_id, {"node_name": row["name"], "address": row["address"]})
    return node_id


def trust_applied(ctx: Context, node_id: str, generation: int) -> Row[Any]:
    node = node_row(ctx.tx, node_id, lock=True)
    generation = believable(node, generation)
    if generation > node.trust_generation:
        tell_anew(ctx, node, generation)
    elif generation > node.trust_applied:
        ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(trust_applied=generation))
        allocation_service.settle(ctx, node, generation)
    node_admin.reported(ctx, node)
    return node_row(ctx.tx, node_id)


def catch_up(ctx: Context, node_id: str, generation: int) -> None:
    """The node's trust, if it is newer than what the node has."""
    node = node_row(ctx.tx, node_id, lock=True)
    if knows_more(node, generation):
        tell_anew(ctx, node, generation)


def heartbeat(ctx: Context, node_id: str, body: schemas.Heartbeat) -> bool:
    """True if the node should renew its identity."""
    node = node_row(ctx.tx, node_id, lock=True)
    ctx.tx.execute(update(nodes).where(nodes.c.id == node_id).values(facts=body.facts.model_dump()))
    node_admin.reported(ctx, node)
    return node_keys.renewal_due(ctx.tx, node_id, readmission.origin(body.facts, body.boot_id), ctx.now)
