"""Rows other rooms ask tenancy to write: the identity of an enrolled machine."""

from typing import Any

from sqlalchemy import Connection, insert

from .identity import add_key
from .service import bind
from .tables import principals


def add_machine_principal(
    tx: Connection, node_id: str, name: str, tenant_id: str, jwk: dict[str, Any], role: str, now: int
) -> None:
    row = {"id": node_id, "kind": "node", "name": name, "tenant_id": tenant_id, "created_at": now}
    tx.execute(insert(principals).values(**row))
    add_key(tx, node_id, jwk, now)
    bind(tx, node_id, role, "node", node_id, tenant_id, now)
