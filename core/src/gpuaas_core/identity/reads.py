"""Queries of identity for other rooms: the public key of an account, and key states to join with."""

from sqlalchemy import Connection, bindparam, func, select

from ..kit.json_types import Json
from .assertions import KEYS
from .tables import principal_keys

_k = principal_keys.c
KEY_STATES = select(_k.id, _k.retired_at).subquery("key_states")
_NEWEST_USED = (
    KEYS.where(_k.principal_id == bindparam("principal"), _k.retired_at.is_(None))
    .order_by(func.coalesce(_k.last_used_at, 0).desc(), _k.id.desc())
    .limit(1)
)


def key_in_use(tx: Connection, principal_id: str) -> Json | None:
    """Return the account's most recently used public key, leaving out retired keys, or None if no key is left."""
    key = _NEWEST_USED.first(tx, principal=principal_id)
    return None if key is None else key.public_jwk
