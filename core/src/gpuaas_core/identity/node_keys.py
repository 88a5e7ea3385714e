"""Keys of nodes. They rotate every day, so that a copied key is detected.

Before its key expires, the agent creates the next one, writes it to disk and only then registers it, signed with the
current key. Both are valid until the first use of the next key retires the current one; an agent that crashes at any
point holds a valid key. A caller with a retired key is either a delayed message or a copy of the node. It gets a
challenge that did not exist before the key was retired: a delayed message cannot answer it, but a copy, which has no
other key, does. See docs/decisions/0017-node-identity-and-clone-detection.md.
"""

import base64
import hashlib
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, select, update

from ..iam.directory import find_principal
from ..kit.db import delete_some
from ..kit.vault import Vault
from ..kit.wire import canonical
from . import assertions
from .errors import (
    AssertionRefused,
    IdentityCloned,
    IdentityClosed,
    IdentityExpired,
    IdentitySuperseded,
    IdentityUnknown,
    KeyTaken,
)
from .sessions import close_sessions_of_keys
from .tables import principal_keys

LIFE_S = 24 * 3600
RENEWED_AFTER = 2 / 3  # of its life
REMEMBERED_S = 90 * 24 * 3600  # how long a retired key is recognised


def add_key(tx: Connection, node_id: str, jwk: dict[str, Any], origin: str, generation: int, now: int) -> str:
    facts = {"generation": generation, "thumbprint": thumbprint(jwk), "origin": origin}
    return assertions.add_key(tx, node_id, jwk, now, **facts, expires_at=now + LIFE_S * 1000)


def thumbprint(jwk: dict[str, Any]) -> str:
    """The JWK thumbprint of RFC 7638: a key name that agent and platform both compute."""
    digest = hashlib.sha256(canonical(jwk).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_new(tx: Connection, node_id: str, jwk: dict[str, Any]) -> None:
    """A former key is rejected: it may have been copied."""
    same = select(principal_keys.c.id).where(_of(node_id), principal_keys.c.thumbprint == thumbprint(jwk))
    if tx.execute(same).first():
        raise KeyTaken("The node has, or had, exactly this key.")


def next_generation(tx: Connection, node_id: str) -> int:
    newest = select(func.max(principal_keys.c.generation)).where(principal_keys.c.principal_id == node_id)
    return (tx.execute(newest).scalar() or 0) + 1


def sign_in(tx: Connection, vault: Vault, assertion: str, now: int) -> tuple[Row[Any], str]:
    """Checks a client assertion; for nodes, with the rules for node keys."""
    issuer, kid = assertions.read_unverified(assertion)
    row = find_principal(tx, issuer)
    if row is None or row.kind != "node":
        return assertions.check_assertion(tx, assertion, now)
    key = _proven(tx, vault, assertion, row, kid, now)
    if key.expires_at is not None and key.expires_at <= now:
        raise IdentityExpired(f"The key of {row.name} has expired: node keys are valid for a day. Renew it first.")
    return row, key.id


def renew(
    tx: Connection, vault: Vault, assertion: str, jwk: dict[str, Any], origin: str, now: int
) -> tuple[Row[Any], Row[Any]]:
    """The node and its next key. Repeating the request with the same next key changes nothing."""
    issuer, kid = assertions.read_unverified(assertion)
    row = find_principal(tx, issuer)
    if row is None or row.kind != "node":
        raise AssertionRefused("There is no node with this id.")
    key = _proven(tx, vault, assertion, row, kid, now)
    name = thumbprint(jwk)
    known = list(tx.execute(select(principal_keys).where(_of(row.id))))
    waiting = [k for k in known if k.generation == (key.generation or 1) + 1 and k.retired_at is None]
    if waiting and waiting[0].thumbprint != name:
        raise IdentityCloned(row.id, key.id, f"Two different next keys were registered for {row.name}.")
    if waiting:
        changes = {"expires_at": now + LIFE_S * 1000, "origin": origin}
        tx.execute(update(principal_keys).where(principal_keys.c.id == waiting[0].id).values(**changes))
        return row, _key(tx, waiting[0].id)
    check_new(tx, row.id, jwk)
    return row, _key(tx, add_key(tx, row.id, jwk, origin, (key.generation or 1) + 1, now))


def renewal_due(tx: Connection, node_id: str, origin: str, now: int) -> bool:
    """True near the end of the key's life, while the next key is unused, and when the report comes from another boot or
    machine: if that is a copy, the renewal retires the key of the original, whose next sign-in reveals the copy.
    """
    newest = select(principal_keys).where(_of(node_id), principal_keys.c.retired_at.is_(None))
    key = tx.execute(newest.order_by(principal_keys.c.generation.desc(), principal_keys.c.id.desc()).limit(1)).first()
    if key is None:
        return False
    old = key.expires_at is None or now >= key.expires_at - LIFE_S * 1000 * (1 - RENEWED_AFTER)
    return old or key.last_used_at is None or key.origin != origin


def still_superseded(tx: Connection, key_id: str) -> bool:
    """False if an administrator readmitted or retired the node in the meantime, which closes its keys."""
    row = tx.execute(select(principal_keys).where(principal_keys.c.id == key_id)).first()
    return row is not None and (row.retired_at is None or row.superseded_by is not None)


def forget_old_keys(tx: Connection, now: int) -> int:
    old = principal_keys.c.retired_at < now - REMEMBERED_S * 1000
    return delete_some(tx, principal_keys, principal_keys.c.generation.is_not(None) & old)


def _proven(tx: Connection, vault: Vault, assertion: str, row: Row[Any], kid: str | None, now: int) -> Row[Any]:
    """The valid key that signed the assertion. Locks the node's keys, so that two uses run one after the other."""
    mine = select(principal_keys).where(_of(row.id)).order_by(principal_keys.c.id)
    keys = list(tx.execute(mine.with_for_update()))
    shown = [k for k in keys if (kid in (k.id, k.thumbprint) if kid else k.retired_at is None)]
    if not shown and row.disabled_at is None:
        raise IdentityUnknown(f"{row.name} has no such key.")
    claims, key_id = assertions.verify(tx, assertion, shown or keys, row.id, now)
    key = next(k for k in keys if k.id == key_id)
    if row.disabled_at is not None:
        raise IdentityClosed(f"The node {row.name} is suspended or retired.")
    if key.retired_at is not None:
        raise _retired(vault, row, key, claims)
    assertions.mark_used(tx, key.id, now)
    if key.last_used_at is None:
        _retire_former(tx, row.id, key, now)
    return key


def _retired(vault: Vault, row: Row[Any], key: Row[Any], claims: dict[str, Any]) -> Exception:
    if key.superseded_by is None:
        return IdentityClosed(f"This key of {row.name} was closed when the node was enrolled again.")
    challenge = vault.mac(f"superseded {key.id} {key.superseded_by}")
    if claims.get("challenge") == challenge:
        return IdentityCloned(row.id, key.id, f"A copy of {row.name} uses a key that a newer key has replaced.")
    detail = f"This key of {row.name} was replaced by a newer one, which has been used."
    return IdentitySuperseded(row.id, key.id, detail, challenge)


def _retire_former(tx: Connection, node_id: str, key: Row[Any], now: int) -> None:
    former = [_of(node_id), principal_keys.c.retired_at.is_(None), principal_keys.c.id != key.id]
    retire = update(principal_keys).where(*former, principal_keys.c.generation < (key.generation or 0))
    ids = list(tx.execute(retire.values(retired_at=now, superseded_by=key.id).returning(principal_keys.c.id)).scalars())
    close_sessions_of_keys(tx, ids, now)


def _of(node_id: str) -> ColumnElement[bool]:
    return principal_keys.c.principal_id == node_id


def _key(tx: Connection, key_id: str) -> Row[Any]:
    return tx.execute(select(principal_keys).where(principal_keys.c.id == key_id)).one()
