"""What a host must trust at the moment: a generation number and the full picture, applied whole or not at all.

A generation rises with every change; the agent reports the one it applied; allocations become usable (or free) then.
"""

from typing import Any

from sqlalchemy import Connection, Row, select, update

from ..custody import authorities, task_keys
from ..custody.vault import Vault
from .schemas import TaskKey, TrustView
from .tables import allocations, nodes

LOGIN_USER = "root"


def trust_of(tx: Connection, vault: Vault, node: Row[Any]) -> TrustView:
    held = select(allocations.c.id).where(
        allocations.c.node_id == node.id, allocations.c.state.in_(["requested", "active"])
    )
    return TrustView(
        generation=node.trust_generation,
        user_ca_public_keys=[authorities.public_key(tx, node.tenant_id, "user")],
        principals={LOGIN_USER: [row.id for row in tx.execute(held.order_by(allocations.c.id))]},
        host_certificate=node.host_certificate,
        host_ca_public_key=authorities.public_key(tx, node.tenant_id, "host"),
        login_user=LOGIN_USER,
        task_keys=[TaskKey(**key) for key in task_keys.public_keys(vault)],
    )


def next_generation(tx: Connection, node_id: str) -> int:
    bump = update(nodes).where(nodes.c.id == node_id).values(trust_generation=nodes.c.trust_generation + 1)
    return tx.execute(bump.returning(nodes.c.trust_generation)).scalar_one()
