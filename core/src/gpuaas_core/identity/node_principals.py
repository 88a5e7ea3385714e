"""Rows other rooms ask tenancy to write: the identity of an enrolled machine, and its end."""

from typing import Any

from sqlalchemy import Connection, insert, update

from ..tenancy.service import bind
from ..tenancy.tables import principal_keys, principals, sessions
from . import node_keys
from .authentication import close_sessions


def add_machine_principal(
    tx: Connection, node_id: str, name: str, tenant_id: str, jwk: dict[str, Any], origin: str, role: str, now: int
) -> None:
    row = {"id": node_id, "kind": "node", "name": name, "tenant_id": tenant_id, "created_at": now}
    tx.execute(insert(principals).values(**row))
    node_keys.add_key(tx, node_id, jwk, origin, 1, now)
    bind(tx, node_id, role, "node", node_id, tenant_id, now)


def close_machine_principal(tx: Connection, node_id: str, now: int) -> None:
    """Neither its tokens nor its keys open anything any more."""
    tx.execute(update(principals).where(principals.c.id == node_id).values(disabled_at=now))
    _close_keys(tx, node_id, now)


def suspend_machine_principal(tx: Connection, node_id: str, now: int) -> None:
    """Nobody signs in as this machine, whatever key they hold; which of its keys are former ones stays known."""
    tx.execute(update(principals).where(principals.c.id == node_id).values(disabled_at=now))
    close_sessions(tx, sessions.c.principal_id == node_id, now=now)


def reopen_machine_principal(tx: Connection, node_id: str, jwk: dict[str, Any], origin: str, now: int) -> None:
    """With one key, made now; every former one is closed, so that whoever still holds it raises no alarm."""
    generation = node_keys.next_generation(tx, node_id)
    node_keys.check_new(tx, node_id, jwk)
    _close_keys(tx, node_id, now)
    tx.execute(update(principals).where(principals.c.id == node_id).values(disabled_at=None))
    node_keys.add_key(tx, node_id, jwk, origin, generation, now)


def _close_keys(tx: Connection, node_id: str, now: int) -> None:
    mine = principal_keys.c.principal_id == node_id
    tx.execute(update(principal_keys).where(mine).values(superseded_by=None))
    tx.execute(update(principal_keys).where(mine, principal_keys.c.retired_at.is_(None)).values(retired_at=now))
    close_sessions(tx, sessions.c.principal_id == node_id, now=now)
