"""The SSH trust configuration of a host. Each generation contains the whole configuration, and the host applies it
atomically."""

from sqlalchemy import Connection

from ..capacity.reads import on_node
from ..capacity.rows import NodeRow
from ..capacity.trust import HOLDING
from ..custody import task_keys
from ..custody.vault import Vault
from . import authorities, grants
from .rows import AuthorityRow
from .schemas import TaskKey, TrustView

LOGIN_USER = "root"


def trust_of(tx: Connection, vault: Vault, node: NodeRow, now: int) -> TrustView:
    held = sorted(tx.execute(on_node(node.id, *HOLDING)).scalars())
    users = authorities.trusted(tx, node.tenant_id, authorities.USER)
    return TrustView(
        generation=node.trust_generation,
        user_ca_public_keys=[row.public_key for row in users],
        principals={LOGIN_USER: held},
        people=[people_of(allocation_id) for allocation_id in held],
        host_certificate=node.host_certificate,
        host_ca_public_key=host_authorities(tx, node.tenant_id)[-1].public_key,
        login_user=LOGIN_USER,
        revoked_serials=[str(serial) for serial in grants.revoked_serials(tx, node.id, now)],
        task_keys=[TaskKey(**key) for key in task_keys.public_keys(vault)],
    )


def people_of(allocation_id: str) -> str:
    """Return the SSH principal with which people log in on this allocation, as an unprivileged user. Controllers log in
    with another principal, the allocation id."""
    return f"{allocation_id}.people"


def host_authorities(tx: Connection, tenant_id: str) -> list[AuthorityRow]:
    """Return all host authorities that clients must trust. The last of them is the authority that signs."""
    rows = authorities.trusted(tx, tenant_id, authorities.HOST)
    return sorted(rows, key=lambda row: row.state == "active")
