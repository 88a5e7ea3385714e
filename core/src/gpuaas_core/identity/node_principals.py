"""The principal of an enrolled node: created, suspended, reopened and closed. Called by capacity."""

from typing import Any

from sqlalchemy import Connection, update

from ..iam.bindings import bind
from ..iam.directory import add_principal, change_principal
from . import node_keys
from .sessions import close_sessions_of
from .tables import principal_keys


def add_node_principal(
    tx: Connection, node_id: str, name: str, tenant_id: str, jwk: dict[str, Any], origin: str, role: str, now: int
) -> None:
    row = {"id": node_id, "kind": "node", "name": name, "tenant_id": tenant_id, "created_at": now}
    add_principal(tx, **row)
    node_keys.add_key(tx, node_id, jwk, origin, 1, now)
    bind(tx, node_id, role, "node", node_id, tenant_id, now)


def close_node_principal(tx: Connection, node_id: str, now: int) -> None:
    """Disables the node: its tokens and keys are rejected from now on."""
    change_principal(tx, node_id, disabled_at=now)
    _close_keys(tx, node_id, now)


def suspend_node_principal(tx: Connection, node_id: str, now: int) -> None:
    """No key of the node can sign in. The record of which keys were superseded stays."""
    change_principal(tx, node_id, disabled_at=now)
    close_sessions_of(tx, node_id, now)


def reopen_node_principal(tx: Connection, node_id: str, jwk: dict[str, Any], origin: str, now: int) -> None:
    """Enables the node with one new key. Every former key is closed, so that using one raises no clone alarm."""
    generation = node_keys.next_generation(tx, node_id)
    node_keys.check_new(tx, node_id, jwk)
    _close_keys(tx, node_id, now)
    change_principal(tx, node_id, disabled_at=None)
    node_keys.add_key(tx, node_id, jwk, origin, generation, now)


def _close_keys(tx: Connection, node_id: str, now: int) -> None:
    mine = principal_keys.c.principal_id == node_id
    tx.execute(update(principal_keys).where(mine).values(superseded_by=None))
    tx.execute(update(principal_keys).where(mine, principal_keys.c.retired_at.is_(None)).values(retired_at=now))
    close_sessions_of(tx, node_id, now)
