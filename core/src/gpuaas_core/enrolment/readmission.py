"""Changes of a node's identity: a renewed key, a suspected copy, a readmission with a new identity.

Which keys are valid is decided in identity/node_keys.py; this module changes the node. Called by the node routes and,
through `Platform.suspicion`, wherever a former key was presented.
"""

from sqlalchemy import Connection, bindparam, select, update

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..capacity import contacts
from ..capacity.node_admin import rejoin_node, suspend_node, with_host_key
from ..capacity.node_reports import origin
from ..capacity.reads import node_row, node_scope
from ..capacity.rows import NodeId, NodeRow
from ..custody.vault import Vault
from ..events.event_log import declare
from ..iam.principals import principal_of
from ..identity import assertions, node_keys, node_principals
from ..identity.errors import IdentityCloned, IdentitySuperseded
from ..kit.json_types import Json
from ..kit.problems import UNSEEN, NotFound, Problem
from ..kit.rows import Query
from ..machine_access import authorities
from . import schemas
from .errors import EnrolmentTokenInvalid
from .rows import EnrolmentRow
from .tables import enrolments

declare(
    {
        "capacity.enrolment.refused": "An enrolment was rejected: another machine had already used its token.",
        "capacity.node.suspended": (
            "A node was suspended: two machines use its identity. Both machines are locked out until the node is "
            "readmitted."
        ),
        "capacity.node.readmitted": "A one-time token was created with which a node can rejoin under a new identity.",
        "capacity.node.rejoined": "A node rejoined with a new identity; its former identity is rejected from now on.",
    }
)

_ENROLMENT = Query(select(enrolments), EnrolmentRow).where(enrolments.c.id == bindparam("enrolment"))


def renew(ctx: Context, vault: Vault, body: schemas.RenewIdentity) -> schemas.IdentityView:
    jwk = assertions.check_public_jwk(body.public_jwk)
    made_on = f"{body.machine_id}/{body.boot_id}"
    row, key = node_keys.renew(
        ctx.tx, vault, body.client_assertion, jwk, made_on, ctx.now, life_s=ctx.durations.node_key_s
    )
    ctx.principal, ctx.scope, ctx.resource_id = principal_of(ctx.tx, row), node_scope(ctx.tx, row.id), row.id
    ctx.reason = f"identity {key.generation} of the node"
    if key.expires_at is None or key.generation is None:
        raise RuntimeError("a node's key has a generation and an end")
    lives = (key.expires_at - ctx.now) // 1000
    return schemas.IdentityView(node_id=row.id, generation=key.generation, expires_in=lives)


def suspect(ctx: Context, shown: Problem, seen_address: str) -> None:
    """Record that a former key of the node was presented. Other problems are ignored.

    If the caller also answered the challenge with that key, a second machine has the node's identity: the node is
    suspended.
    """
    if not isinstance(shown, (IdentitySuperseded, IdentityCloned)):
        return
    node = node_row(ctx.tx, shown.node_id, lock=True)
    ctx.scope, ctx.resource_id = node_scope(ctx.tx, node.id), node.id
    ctx.note(ctx.entry("denied", f"{shown.detail} It was presented by {seen_address}."))
    if isinstance(shown, IdentitySuperseded) or not node_keys.still_superseded(ctx.tx, shown.key_id):
        return
    if node.state in ("suspended", "retired"):
        return
    suspend_node(ctx.tx, node, shown.detail)
    node_principals.suspend_node_principal(ctx.tx, node.id, ctx.now)
    ctx.rights_changed(node.id)
    ctx.emit(
        "capacity.node.suspended", node.id, {"node_name": node.name, "reason": shown.detail} | {"state": "suspended"}
    )
    ctx.notify(f"node:{node.id}")


def rejoin(
    ctx: Context, vault: Vault, invitation: EnrolmentRow, body: schemas.Enrol, jwk: Json, seen_address: str
) -> NodeId:
    """Enrol the machine again as the same node, and return the node's id. Its name and allocations stay; its former
    keys and tokens stop working."""
    if invitation.node_id is None:
        raise NotFound(UNSEEN)
    node = node_row(ctx.tx, invitation.node_id, lock=True)
    if node.state == "retired":
        raise EnrolmentTokenInvalid(f"The node {node.name!r} was retired meanwhile.")
    certificate = authorities.sign_host(
        ctx.tx, vault, node.tenant_id, key_line=body.ssh_host_public_key, node_id=node.id, now=ctx.now
    )
    address = body.address or seen_address
    said = {"address": address, "ssh_port": body.ssh_port, "ssh_host_public_key": body.ssh_host_public_key}
    made = {"host_certificate": certificate.text, "facts": body.facts.model_dump()}
    state = rejoin_node(ctx.tx, node, said | made)
    contacts.renew(ctx.tx, node.id, ctx.now)
    others = [enrolments.c.node_id == node.id, enrolments.c.id != invitation.id, enrolments.c.used_by_node.is_(None)]
    ctx.tx.execute(update(enrolments).where(*others).values(expires_at=ctx.now))  # closes the node's other invitations
    node_principals.reopen_node_principal(
        ctx.tx,
        node.id,
        jwk,
        origin(body.facts.machine_id, body.facts.boot_id),
        ctx.now,
        life_s=ctx.durations.node_key_s,
    )
    ctx.rights_changed(node.id)
    ctx.scope, ctx.resource_id = node_scope(ctx.tx, node.id), node.id
    data = {"node_name": node.name, "address": address, "state": state}
    ctx.emit("capacity.node.rejoined", node.id, data)
    return node.id


def same_machine(tx: Connection, tenant_id: str, body: schemas.Enrol) -> list[NodeRow]:
    """Lock and return the tenant's nodes with both the same machine id and the same SSH host key. A node with only one
    of them may come from a copied image and is left out."""
    if not body.facts.machine_id:
        return []
    rows = with_host_key(tx, tenant_id, body.ssh_host_public_key)
    return [node_row(tx, row.id, lock=True) for row in rows if row.facts.get("machine_id") == body.facts.machine_id]


def emit_reuse(ctx: Context, refused: EnrolmentTokenInvalid, seen_address: str) -> None:
    """Emit an event to the tenant that created the token: a second machine tried to use the token."""
    row = _ENROLMENT.one(ctx.tx, enrolment=refused.reused)
    ctx.scope = Scope((("tenant", row.tenant_id), PLATFORM), tenant_id=row.tenant_id)
    ctx.resource_id = row.id
    ctx.note(ctx.entry("denied", f"{refused.detail} It was presented by {seen_address}."))
    ctx.emit("capacity.enrolment.refused", row.id, {"node_name": row.node_name, "address": seen_address})
