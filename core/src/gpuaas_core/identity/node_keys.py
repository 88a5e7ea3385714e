"""Keys of nodes. They are rotated every day, so that a copied key is detected.

Before a node's key expires, the agent creates the next key, writes it to disk and only then registers it, with a
request signed by the current key. Both keys are valid until the first use of the next key retires the current one, so
an agent that crashes at any point holds a valid key. A request with a retired key is either a delayed message or comes
from a copy of the node. The answer contains a challenge that did not exist before the key was retired. A delayed
message cannot contain the signed challenge; a copy has no other key and signs the challenge. See
docs/decisions/0017-node-identity-and-clone-detection.md.
"""

import base64
import hashlib

from sqlalchemy import Connection, bindparam, func, select, update

from ..iam.directory import find_principal
from ..iam.rows import PrincipalRow
from ..kit.db import delete_some
from ..kit.json_types import Json
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
from .rows import KeyId, KeyRow
from .sessions import close_sessions_of_keys
from .tables import principal_keys

RENEWED_AFTER = 2 / 3  # of its life
REMEMBERED_S = 90 * 24 * 3600  # how long a retired key is recognised

_k = principal_keys.c
_OF_NODE = assertions.KEYS.where(_k.principal_id == bindparam("node"))
_LOCKED = _OF_NODE.order_by(_k.id).locked()
_NEWEST = _OF_NODE.where(_k.retired_at.is_(None)).order_by(_k.generation.desc(), _k.id.desc()).limit(1)
_BY_ID = assertions.KEYS.where(_k.id == bindparam("key"))
_SAME = select(_k.id).where(_k.principal_id == bindparam("node"), _k.thumbprint == bindparam("thumbprint"))
_NEWEST_GENERATION = select(func.max(_k.generation)).where(_k.principal_id == bindparam("node"))


def add_key(tx: Connection, node_id: str, jwk: Json, origin: str, generation: int, now: int, *, life_s: int) -> KeyId:
    return assertions.add_key(
        tx,
        node_id,
        jwk,
        now,
        generation=generation,
        thumbprint=thumbprint(jwk),
        origin=origin,
        expires_at=now + life_s * 1000,
    )


def thumbprint(jwk: Json) -> str:
    """Compute the JWK thumbprint (RFC 7638), by which agent and platform identify a key."""
    digest = hashlib.sha256(canonical(jwk).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_new(tx: Connection, node_id: str, jwk: Json) -> None:
    """Raise KeyTaken if the node has or had exactly this key, because a former key may have been copied."""
    if tx.execute(_SAME, {"node": node_id, "thumbprint": thumbprint(jwk)}).first():
        raise KeyTaken("The node has, or had, exactly this key.")


def next_generation(tx: Connection, node_id: str) -> int:
    return (tx.execute(_NEWEST_GENERATION, {"node": node_id}).scalar() or 0) + 1


def sign_in(tx: Connection, vault: Vault, assertion: str, now: int) -> tuple[PrincipalRow, KeyId]:
    """Verify a client assertion; return its principal and key id. A key of a node must also be neither expired nor
    superseded."""
    issuer, kid = assertions.read_unverified(assertion)
    row = find_principal(tx, issuer)
    if row is None or row.kind != "node":
        return assertions.check_assertion(tx, assertion, now)
    key = _proven(tx, vault, assertion, row, kid, now)
    if key.expires_at is not None and key.expires_at <= now:
        raise IdentityExpired(f"The key of {row.name} has expired: node keys are valid for a day. Renew it first.")
    return row, key.id


def renew(
    tx: Connection, vault: Vault, assertion: str, jwk: Json, origin: str, now: int, *, life_s: int
) -> tuple[PrincipalRow, KeyRow]:
    """Register the node's next key; return the node and the key. A repeated request with the same key only extends its
    expiry. A second, different next key raises IdentityCloned."""
    issuer, kid = assertions.read_unverified(assertion)
    row = find_principal(tx, issuer)
    if row is None or row.kind != "node":
        raise AssertionRefused("There is no node with this id.")
    key = _proven(tx, vault, assertion, row, kid, now)
    name = thumbprint(jwk)
    known = _OF_NODE.all(tx, node=row.id)
    waiting = [k for k in known if k.generation == (key.generation or 1) + 1 and k.retired_at is None]
    if waiting and waiting[0].thumbprint != name:
        raise IdentityCloned(row.id, key.id, f"Two different next keys were registered for {row.name}.")
    if waiting:
        changes = {"expires_at": now + life_s * 1000, "origin": origin}
        tx.execute(update(principal_keys).where(principal_keys.c.id == waiting[0].id).values(**changes))
        return row, _BY_ID.one(tx, key=waiting[0].id)
    check_new(tx, row.id, jwk)
    added = add_key(tx, row.id, jwk, origin, (key.generation or 1) + 1, now, life_s=life_s)
    return row, _BY_ID.one(tx, key=added)


def renewal_due(tx: Connection, node_id: str, origin: str, now: int, *, life_s: int) -> bool:
    """Return True if the node should renew its newest key: the key expires soon, was never used, or was created by
    another machine or boot. Return False if the node has no valid key.

    If the poll comes from a copy of the node, its renewal retires the key of the original, and the next sign-in of the
    original reveals the copy.
    """
    key = _NEWEST.first(tx, node=node_id)
    if key is None:
        return False
    old = key.expires_at is None or now >= key.expires_at - life_s * 1000 * (1 - RENEWED_AFTER)
    return old or key.last_used_at is None or key.origin != origin


def still_superseded(tx: Connection, key_id: str) -> bool:
    """Return False if the key was deleted, or closed because an administrator readmitted or retired the node; otherwise
    return True."""
    row = _BY_ID.first(tx, key=key_id)
    return row is not None and (row.retired_at is None or row.superseded_by is not None)


def forget_old_keys(tx: Connection, now: int) -> int:
    old = principal_keys.c.retired_at < now - REMEMBERED_S * 1000
    return delete_some(tx, principal_keys, principal_keys.c.generation.is_not(None) & old)


def _proven(tx: Connection, vault: Vault, assertion: str, row: PrincipalRow, kid: str | None, now: int) -> KeyRow:
    """Return the node's key that signed the assertion, or raise an error if the key is unknown or retired, or the node
    is disabled. Locks the node's keys, so that two uses run one after the other."""
    keys = _LOCKED.all(tx, node=row.id)
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


def _retired(vault: Vault, row: PrincipalRow, key: KeyRow, claims: Json) -> Exception:
    if key.superseded_by is None:
        return IdentityClosed(f"This key of {row.name} was closed when the node was enrolled again.")
    challenge = vault.mac(f"superseded {key.id} {key.superseded_by}")
    if claims.get("challenge") == challenge:
        return IdentityCloned(row.id, key.id, f"A copy of {row.name} uses a key that a newer key has replaced.")
    detail = f"This key of {row.name} was replaced by a newer one, which has been used."
    return IdentitySuperseded(row.id, key.id, detail, challenge)


def _retire_former(tx: Connection, node_id: str, key: KeyRow, now: int) -> None:
    former = [_k.principal_id == node_id, _k.retired_at.is_(None), _k.id != key.id]
    retire = update(principal_keys).where(*former, principal_keys.c.generation < (key.generation or 0))
    ids = list(tx.execute(retire.values(retired_at=now, superseded_by=key.id).returning(principal_keys.c.id)).scalars())
    close_sessions_of_keys(tx, ids, now)
