"""Renews host certificates: after two thirds of their lifetime, and when another host authority starts to sign."""

from sqlalchemy import Connection

from ..authz.context import Context
from ..capacity.reads import node_scope
from ..capacity.rows import NodeRow
from ..capacity.trust import certificates_end, lock_certified, next_authority_generation
from ..custody.vault import Vault
from ..events.event_log import declare
from . import authorities

declare(
    {
        "capacity.node.certified": (
            "An SSH host certificate was issued to a node; the node uses it after its next update of SSH trust."
        )
    }
)

RENEW_MS = authorities.HOST_CERTIFICATE_S * 1000 // 3  # before the certificate expires
AT_ONCE = 100


def renewal_due(tx: Connection, now: int) -> bool:
    return certificates_end(tx, now + RENEW_MS)


def renew_due(ctx: Context, vault: Vault) -> None:
    for node in lock_certified(ctx.tx, ends_before=ctx.now + RENEW_MS, most=AT_ONCE):
        certify(ctx, vault, node)


def renew_all(ctx: Context, vault: Vault, tenant_id: str) -> None:
    """Renew all host certificates of a tenant, because another host authority signs now."""
    for node in lock_certified(ctx.tx, tenant_id=tenant_id):
        certify(ctx, vault, node)


def certify(ctx: Context, vault: Vault, node: NodeRow) -> None:
    certificate = authorities.sign_host(
        ctx.tx, vault, node.tenant_id, key_line=node.ssh_host_public_key, node_id=node.id, now=ctx.now
    )
    until = ctx.now + certificate.lives_s * 1000
    change = {"host_certificate": certificate.text, "host_authority": certificate.authority}
    next_authority_generation(ctx.tx, node.id, change | {"host_certified_until": until})
    facts = {"node_name": node.name, "expires_at": until}
    ctx.emit("capacity.node.certified", node.id, facts, scope=node_scope(ctx.tx, node.id))
    ctx.notify(f"node:{node.id}")
