"""Invites machines, and enrols them as nodes, each with its own identity and host certificate."""

import hmac

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..authz.permissions import NODE_AGENT
from ..capacity import contacts, node_admin
from ..capacity.errors import NodeNameTaken
from ..capacity.node_admin import add_node, name_taken
from ..capacity.node_reports import origin
from ..capacity.node_selection import pool_row
from ..capacity.reads import node_row
from ..capacity.rows import NodeId, NodeRow
from ..custody.vault import Vault
from ..events.event_log import declare
from ..idempotency import requests
from ..identity import assertions, node_principals
from ..kit.ids import new_id
from ..kit.json_types import Json
from ..kit.rows import Query
from ..kit.wire import canonical
from ..machine_access import authorities
from . import readmission, schemas
from .errors import EnrolmentTokenInvalid
from .rows import EnrolmentRow
from .tables import enrolments

declare(
    {
        "capacity.enrolment.created": "A one-time token was created for the enrolment of a node.",
        "capacity.node.enrolled": "A node was enrolled with its own identity.",
    }
)

ENROLMENT_S = 600
_e = enrolments.c
_ENROLMENT = Query(select(enrolments), EnrolmentRow).where(_e.id == bindparam("enrolment"))
_LOCKED = _ENROLMENT.locked()


def create_enrolment(ctx: Context, vault: Vault, tenant_id: str, body: schemas.CreateEnrolment) -> schemas.Invited:
    if name_taken(ctx.tx, tenant_id, body.node_name):
        raise NodeNameTaken(f"The tenant already has a node named {body.node_name!r}.")
    if body.pool is not None:
        pool_row(ctx.tx, tenant_id, body.pool, lock=True)
    authorities.ensure_authorities(ctx.tx, vault, tenant_id, ctx.now)
    row: dict[str, str | Json | None] = {"tenant_id": tenant_id, "node_name": body.node_name, "labels": body.labels}
    return _invite(ctx, row | {"region": body.region, "sku": body.sku, "pool": body.pool})


def readmit(ctx: Context, node_id: str, reason: str) -> schemas.Invited:
    """Create an invitation with which the machine rejoins as the same node, with a new identity. The current identity
    ends when the machine rejoins."""
    node = node_row(ctx.tx, node_id, lock=True)
    if problem := node_admin.refusal(ctx.tx, node, "readmit"):
        raise problem
    row: dict[str, str | Json | None] = {"tenant_id": node.tenant_id, "node_name": node.name, "node_id": node.id}
    row["labels"] = node.labels
    invited = _invite(ctx, row | {"region": node.region, "sku": node.sku, "pool": node.pool})
    ctx.resource_id = node_id
    ctx.emit("capacity.node.readmitted", node_id, {"node_name": node.name, "state": node.state, "reason": reason})
    return invited


def _invite(ctx: Context, row: dict[str, str | Json | None]) -> schemas.Invited:
    enrolment_id = ctx.resource_id = new_id("enr")
    when = {"expires_at": ctx.now + ENROLMENT_S * 1000, "created_at": ctx.now}
    name = str(row["node_name"])
    ctx.tx.execute(insert(enrolments).values(id=enrolment_id, **row, **when))
    ctx.emit("capacity.enrolment.created", enrolment_id, {"node_name": name})
    return schemas.Invited(id=enrolment_id, node_name=name, expires_in=ENROLMENT_S)


def enrolment_token(vault: Vault, enrolment_id: str) -> str:
    """Return the token of an enrolment: its id and a keyed hash of the id. The token is never stored."""
    return f"{enrolment_id}.{vault.mac(enrolment_id)}"


def check_token(tx: Connection, vault: Vault, token: str, now: int) -> EnrolmentRow:
    enrolment_id, _, _ = token.partition(".")
    row = _LOCKED.first(tx, enrolment=enrolment_id)
    good = hmac.compare_digest(enrolment_token(vault, enrolment_id).encode(), token.encode())
    if row is None or not good or row.expires_at <= now:
        raise EnrolmentTokenInvalid("The enrolment token is unknown or has expired.")
    return row


def close_enrolments(tx: Connection, now: int) -> int:
    """Close open enrolments after a restore, and return how many:
    a token that was used since the backup must not work again."""
    open_ones = enrolments.c.used_by_node.is_(None) & (enrolments.c.expires_at > now)
    return tx.execute(update(enrolments).where(open_ones).values(expires_at=now)).rowcount


def enrol(ctx: Context, vault: Vault, body: schemas.Enrol, seen_address: str) -> NodeRow:
    """Enrol a machine and return its node. A token works for one machine, which may repeat the request with the same
    key if the response was lost; any other use raises EnrolmentTokenInvalid."""
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
    ctx: Context, vault: Vault, invitation: EnrolmentRow, body: schemas.Enrol, jwk: Json, seen_address: str
) -> NodeId:
    node_id = NodeId(new_id("node"))
    ctx.resource_id = node_id
    tenant_id = invitation.tenant_id
    certificate = authorities.sign_host(
        ctx.tx, vault, tenant_id, key_line=body.ssh_host_public_key, node_id=node_id, now=ctx.now
    )
    node = NodeRow(
        id=node_id,
        tenant_id=tenant_id,
        name=invitation.node_name,
        state="enrolling",
        standing="ready",
        standing_reason=None,
        address=body.address or seen_address,
        ssh_port=body.ssh_port,
        ssh_host_public_key=body.ssh_host_public_key,
        host_certificate=certificate.text,
        host_authority=certificate.authority,
        host_certified_until=ctx.now + certificate.lives_s * 1000,
        labels=invitation.labels,
        region=invitation.region,
        sku=invitation.sku,
        pool=invitation.pool,
        facts=body.facts.model_dump(),
        trust_generation=1,
        trust_applied=0,
        tasks_at=None,
        authority_generation=0,
        created_at=ctx.now,
    )
    ctx.scope = Scope((("node", node_id), ("tenant", tenant_id), PLATFORM), tenant_id=tenant_id)
    for former in readmission.same_machine(ctx.tx, tenant_id, body):
        node_admin.replace(ctx, former, node.name)
    if not add_node(ctx.tx, node):
        raise NodeNameTaken(f"The tenant already has a node named {invitation.node_name!r}.")
    contacts.add(ctx.tx, node_id, ctx.now)
    made_on = origin(body.facts.machine_id, body.facts.boot_id)
    life_s = ctx.durations.node_key_s
    node_principals.add_node_principal(
        ctx.tx, node_id, node.name, tenant_id, jwk, made_on, NODE_AGENT, ctx.now, life_s=life_s
    )
    ctx.emit("capacity.node.enrolled", node_id, {"node_name": node.name, "address": node.address})
    return node_id


def expected_node(tx: Connection, noun: str, tenant_id: str | None, name: str, now: int) -> str | None:
    """Return the name of an invited node that will use this region, SKU or pool, or None.
    Registered with `capacity.offers`."""
    column = {"region": _e.region, "sku": _e.sku, "pool": _e.pool}[noun]
    query = select(_e.node_name).where(column == name, _e.used_by_node.is_(None), _e.expires_at > now)
    query = query if tenant_id is None else query.where(_e.tenant_id == tenant_id)
    return tx.execute(query.order_by(_e.id).limit(1)).scalar()
