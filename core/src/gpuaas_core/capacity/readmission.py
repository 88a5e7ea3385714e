"""What identity changes do to a node: a renewed key, a suspected copy, a new identity.

The succession of keys is in identity/node_keys.py; this module changes the node. Called by the node routes and,
through `Platform.suspicion`, wherever a former key was presented.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..authz.context import Context
from ..authz.evaluate import PLATFORM, Scope
from ..custody import authorities
from ..custody.vault import Vault
from ..events.event_log import declare
from ..iam.principals import principal_of
from ..identity import assertions, node_keys, node_principals
from ..identity.errors import IdentityCloned, IdentitySuperseded
from ..kit.problems import Problem
from . import schemas
from .errors import EnrolmentTokenInvalid
from .reads import node_row, node_scope
from .states import NODE
from .tables import enrolments, nodes

declare(
    {
        "capacity.enrolment.refused": "An enrolment token that another machine had used was presented again.",
        "capacity.node.suspended": "Two machines use one node's identity; both are locked out until it is readmitted.",
        "capacity.node.readmitted": "A node was invited to rejoin with a new identity.",
        "capacity.node.rejoined": "A node rejoined with a new identity; its former one is closed.",
    }
)


def origin(facts: schemas.Facts, boot_id: str = "") -> str:
    """The origin of a key: the machine that created it, and the boot."""
    return f"{facts.machine_id}/{boot_id or facts.boot_id}"


def renew(ctx: Context, vault: Vault, body: schemas.RenewIdentity) -> schemas.IdentityView:
    jwk = assertions.check_public_jwk(body.public_jwk)
    made_on = f"{body.machine_id}/{body.boot_id}"
    row, key = node_keys.renew(ctx.tx, vault, body.client_assertion, jwk, made_on, ctx.now)
    ctx.principal, ctx.scope, ctx.resource_id = principal_of(ctx.tx, row), node_scope(ctx.tx, row.id), row.id
    ctx.reason = f"identity {key.generation} of the node"
    lives = (key.expires_at - ctx.now) // 1000
    return schemas.IdentityView(node_id=row.id, generation=key.generation, expires_in=lives)


def suspect(ctx: Context, shown: Problem, seen_address: str) -> None:
    """A former key was presented: record it.

    If it also answered the challenge it is a copy, and the node is suspended.
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
    change = {"state": NODE.after(node.state, "suspend"), "standing_reason": shown.detail}
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**change))
    node_principals.suspend_node_principal(ctx.tx, node.id, ctx.now)
    ctx.rights_changed(node.id)
    ctx.emit(
        "capacity.node.suspended", node.id, {"node_name": node.name, "reason": shown.detail} | {"state": "suspended"}
    )
    ctx.notify(f"node:{node.id}")


def rejoin(
    ctx: Context, vault: Vault, invitation: Row[Any], body: schemas.Enrol, jwk: dict[str, Any], seen_address: str
) -> str:
    """Rejoin as the same node: id, name and allocations stay; former keys and tokens stop working."""
    node = node_row(ctx.tx, invitation.node_id, lock=True)
    if node.state == "retired":
        raise EnrolmentTokenInvalid(f"The node {node.name!r} was retired meanwhile.")
    certificate = authorities.sign_host(
        ctx.tx, vault, node.tenant_id, key_line=body.ssh_host_public_key, node_id=node.id, now=ctx.now
    )
    change = {
        "state": NODE.after(node.state, "rejoin"),
        "standing_reason": None if node.state == "suspended" else node.standing_reason,
        "address": body.address or seen_address,
        "ssh_port": body.ssh_port,
        "ssh_host_public_key": body.ssh_host_public_key,
        "host_certificate": certificate.text,
        "facts": body.facts.model_dump(),
        "trust_generation": node.trust_generation + 1,
        "trust_applied": 0,
        "last_seen_at": ctx.now,
    }
    ctx.tx.execute(update(nodes).where(nodes.c.id == node.id).values(**change))
    others = [enrolments.c.node_id == node.id, enrolments.c.id != invitation.id, enrolments.c.used_by_node.is_(None)]
    ctx.tx.execute(update(enrolments).where(*others).values(expires_at=ctx.now))  # one invitation, one rejoin
    node_principals.reopen_node_principal(ctx.tx, node.id, jwk, origin(body.facts), ctx.now)
    ctx.rights_changed(node.id)
    ctx.scope, ctx.resource_id = node_scope(ctx.tx, node.id), node.id
    data = {"node_name": node.name, "address": change["address"], "state": change["state"]}
    ctx.emit("capacity.node.rejoined", node.id, data)
    return node.id


def same_machine(tx: Connection, tenant_id: str, body: schemas.Enrol) -> list[Row[Any]]:
    """Nodes with the same machine id and SSH host key. One of the two alone may come from a copied image."""
    if not body.facts.machine_id:
        return []
    mine = [nodes.c.tenant_id == tenant_id, nodes.c.ssh_host_public_key == body.ssh_host_public_key]
    rows = tx.execute(select(nodes).where(*mine, nodes.c.state != "retired").order_by(nodes.c.id)).all()
    return [node_row(tx, row.id, lock=True) for row in rows if row.facts.get("machine_id") == body.facts.machine_id]


def emit_reuse(ctx: Context, refused: EnrolmentTokenInvalid, seen_address: str) -> None:
    """Emitted to the tenant that created the token: another machine has it."""
    row = ctx.tx.execute(select(enrolments).where(enrolments.c.id == refused.reused)).one()
    ctx.scope = Scope((("tenant", row.tenant_id), PLATFORM), tenant_id=row.tenant_id)
    ctx.resource_id = row.id
    ctx.note(ctx.entry("denied", f"{refused.detail} It was presented by {seen_address}."))
    ctx.emit("capacity.enrolment.refused", row.id, {"node_name": row.node_name, "address": seen_address})
