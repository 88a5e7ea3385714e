"""Rows other rooms ask tenancy to write: the identity of an enrolled machine, and its end."""

from typing import Any

from sqlalchemy import Connection, insert, update

from .identity import add_key, close_sessions
from .service import bind
from .tables import principal_keys, principals, sessions


def add_machine_principal(
    tx: Connection, node_id: str, name: str, tenant_id: str, jwk: dict[str, Any], role: str, now: int
) -> None:
    row = {"id": node_id, "kind": "node", "name": name, "tenant_id": tenant_id, "created_at": now}
    tx.execute(insert(principals).values(**row))
    add_key(tx, node_id, jwk, now)
    bind(tx, node_id, role, "node", node_id, tenant_id, now)


def close_machine_principal(tx: Connection, node_id: str, now: int) -> None:
    """Neither its tokens nor its keys open anything any more."""
    tx.execute(update(principals).where(principals.c.id == node_id).values(disabled_at=now))
    mine = (principal_keys.c.principal_id == node_id) & principal_keys.c.retired_at.is_(None)
    tx.execute(update(principal_keys).where(mine).values(retired_at=now))
    close_sessions(tx, sessions.c.principal_id == node_id, now=now)
