"""Creates, suspends, reopens and closes the principal of an enrolled node. Called by enrolment and capacity."""

from sqlalchemy import Connection, update

from ..iam.bindings import bind
from ..iam.directory import add_principal, change_principal
from ..kit.json_types import Json
from . import node_keys
from .sessions import close_sessions_of
from .tables import principal_keys


def add_node_principal(
    tx: Connection, node_id: str, name: str, tenant_id: str, jwk: Json, origin: str, role: str, now: int, *, life_s: int
) -> None:
    add_principal(tx, node_id, "node", name, now, tenant_id=tenant_id)
    node_keys.add_key(tx, node_id, jwk, origin, 1, now, life_s=life_s)
    bind(tx, node_id, role, "node", node_id, tenant_id, now)


def close_node_principal(tx: Connection, node_id: str, now: int) -> None:
    """Disable the node and close its keys and sessions: its tokens and keys are rejected from now on."""
    change_principal(tx, node_id, disabled_at=now)
    _close_keys(tx, node_id, now)


def suspend_node_principal(tx: Connection, node_id: str, now: int) -> None:
    """Disable the node and close its sessions, so that it cannot sign in. Its keys are not retired, and stay on
    record."""
    change_principal(tx, node_id, disabled_at=now)
    close_sessions_of(tx, node_id, now)


def reopen_node_principal(tx: Connection, node_id: str, jwk: Json, origin: str, now: int, *, life_s: int) -> None:
    """Enable the node with one new key, and close its former keys: they are rejected, and their use no longer raises a
    clone alarm."""
    generation = node_keys.next_generation(tx, node_id)
    node_keys.check_new(tx, node_id, jwk)
    _close_keys(tx, node_id, now)
    change_principal(tx, node_id, disabled_at=None)
    node_keys.add_key(tx, node_id, jwk, origin, generation, now, life_s=life_s)


def _close_keys(tx: Connection, node_id: str, now: int) -> None:
    mine = principal_keys.c.principal_id == node_id
    tx.execute(update(principal_keys).where(mine).values(superseded_by=None))
    tx.execute(update(principal_keys).where(mine, principal_keys.c.retired_at.is_(None)).values(retired_at=now))
    close_sessions_of(tx, node_id, now)
