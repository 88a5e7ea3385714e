"""Identity as other rooms read it: the public key that an account uses."""

from typing import Any

from sqlalchemy import Connection, func, select

from .tables import principal_keys


def key_in_use(tx: Connection, principal_id: str) -> dict[str, Any] | None:
    """The public key a service account signed in with last, of those that are not retired."""
    k = principal_keys.c
    mine = select(k.public_jwk).where(k.principal_id == principal_id, k.retired_at.is_(None))
    newest = mine.order_by(func.coalesce(k.last_used_at, 0).desc(), k.id.desc())
    return tx.execute(newest.limit(1)).scalar()
