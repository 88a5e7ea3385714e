"""Renews host certificates: after two thirds of their lifetime, and when another authority took over."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..authz.context import Context
from ..custody import authorities
from ..custody.vault import Vault
from ..events.event_log import declare
from .reads import node_scope
from .tables import nodes
from .trust import next_authority_generation

declare({"capacity.node.certified": "A host certificate was issued; the node uses it once it applied its trust."})

RENEW_MS = authorities.HOST_CERTIFICATE_S * 1000 // 3  # before the certificate expires
AT_ONCE = 100


def renewal_due(tx: Connection, now: int) -> bool:
    return tx.execute(select(nodes.c.id).where(_due(now), nodes.c.state != "retired").limit(1)).first() is not None


def renew_due(ctx: Context, vault: Vault) -> None:
    certify(ctx, vault, _due(ctx.now), most=AT_ONCE)


def _due(now: int) -> Any:
    return nodes.c.host_certified_until < now + RENEW_MS


def certify(ctx: Context, vault: Vault, which: Any, *, most: int | None = None) -> None:
    """Locked in the order in which nodes are picked, to avoid deadlocks."""
    query = select(nodes).where(which, nodes.c.state != "retired").order_by(nodes.c.name, nodes.c.id).limit(most)
    for node in ctx.tx.execute(query.with_for_update(key_share=True)).all():
        _certify(ctx, vault, node)


def _certify(ctx: Context, vault: Vault, node: Row[Any]) -> None:
    key = {"key_line": node.ssh_host_public_key, "node_id": node.id}
    certificate = authorities.sign_host(ctx.tx, vault, node.tenant_id, **key, now=ctx.now)
    until = ctx.now + certificate.lives_s * 1000
    change = {"host_certificate": certificate.text, "host_authority": certificate.authority}
    next_authority_generation(ctx.tx, node.id, **change, host_certified_until=until)
    facts = {"node_name": node.name, "expires_at": until}
    ctx.emit("capacity.node.certified", node.id, facts, scope=node_scope(ctx.tx, node.id))
    ctx.notify(f"node:{node.id}")
