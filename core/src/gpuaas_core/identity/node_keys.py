"""How a machine proves itself: keys that follow each other by themselves, so that a copy of one is noticed.

A key lives a day. Before it ends the machine makes the next one, keeps it on its disk, and only then tells us, signed
with the one it has. From then on both are good; the first use of the next one retires the one before. A machine that
dies anywhere on the way holds a key that is good. Whoever shows a retired key is late or a copy: they are told a
challenge that nobody could know before the key was retired. A late message cannot answer it; a copy does, as it has
nothing else.
See docs/decisions/0017-node-identity-and-clone-detection.md.
"""

import base64
import hashlib
from typing import Any

from sqlalchemy import Connection, Row, func, select, update

from ..kit.db import delete_some
from ..kit.wire import canonical
from ..tenancy.errors import (
    AssertionRefused,
    IdentityCloned,
    IdentityClosed,
    IdentityExpired,
    IdentitySuperseded,
    IdentityUnknown,
    KeyTaken,
)
from ..tenancy.tables import principal_keys, principals, sessions
from . import authentication

LIFE_S = 24 * 3600
RENEWED_AFTER = 2 / 3  # of its life
REMEMBERED_S = 90 * 24 * 3600  # for so long a retired key is recognised


def add_key(tx: Connection, node_id: str, jwk: dict[str, Any], origin: str, generation: int, now: int) -> str:
    made = {"generation": generation, "thumbprint": thumbprint(jwk), "origin": origin}
    return authentication.add_key(tx, node_id, jwk, now, **made, expires_at=now + LIFE_S * 1000)


def thumbprint(jwk: dict[str, Any]) -> str:
    """RFC 7638: the name of a key that both sides can compute."""
    digest = hashlib.sha256(canonical(jwk).encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_new(tx: Connection, node_id: str, jwk: dict[str, Any]) -> None:
    """A key that somebody may have copied is not taken back."""
    same = select(principal_keys.c.id).where(_of(node_id), principal_keys.c.thumbprint == thumbprint(jwk))
    if tx.execute(same).first():
        raise KeyTaken("The machine has, or had, exactly this key.")


def next_generation(tx: Connection, node_id: str) -> int:
    newest = select(func.max(principal_keys.c.generation)).where(principal_keys.c.principal_id == node_id)
    return (tx.execute(newest).scalar() or 0) + 1


def sign_in(tx: Connection, vault: Any, assertion: str, now: int) -> tuple[Row[Any], str]:
    """As `identity.check_assertion`, and for machines with the rules of their keys."""
    issuer, kid = authentication.claimed(assertion)
    row = tx.execute(select(principals).where(principals.c.id == issuer)).first()
    if row is None or row.kind != "node":
        return authentication.check_assertion(tx, assertion, now)
    key = _proven(tx, vault, assertion, row, kid, now)
    if key.expires_at is not None and key.expires_at <= now:
        raise IdentityExpired(
            f"The key of {row.name} was good until a day after it was made. It must be renewed first."
        )
    return row, key.id


def renew(
    tx: Connection, vault: Any, assertion: str, jwk: dict[str, Any], origin: str, now: int
) -> tuple[Row[Any], Row[Any]]:
    """The machine and its next key. Repeating it with the same next key changes nothing."""
    issuer, kid = authentication.claimed(assertion)
    row = tx.execute(select(principals).where(principals.c.id == issuer, principals.c.kind == "node")).first()
    if row is None:
        raise AssertionRefused("There is no machine with this id.")
    key = _proven(tx, vault, assertion, row, kid, now)
    name = thumbprint(jwk)
    known = list(tx.execute(select(principal_keys).where(_of(row.id))))
    waiting = [one for one in known if one.generation == (key.generation or 1) + 1 and one.retired_at is None]
    if waiting and waiting[0].thumbprint != name:
        raise IdentityCloned(row.id, key.id, f"{row.name} names two different keys as the next one.")
    if waiting:
        late = {"expires_at": now + LIFE_S * 1000, "origin": origin}
        tx.execute(update(principal_keys).where(principal_keys.c.id == waiting[0].id).values(**late))
        return row, _key(tx, waiting[0].id)
    check_new(tx, row.id, jwk)
    return row, _key(tx, add_key(tx, row.id, jwk, origin, (key.generation or 1) + 1, now))


def renewal_due(tx: Connection, node_id: str, origin: str, now: int) -> bool:
    """Near the end of its life, while the next one waits for its first use, and when another boot or machine speaks:
    if that is a copy, it takes the next key and the other one is found out.
    """
    newest = select(principal_keys).where(_of(node_id), principal_keys.c.retired_at.is_(None))
    key = tx.execute(newest.order_by(principal_keys.c.generation.desc(), principal_keys.c.id.desc()).limit(1)).first()
    if key is None:
        return False
    old = key.expires_at is None or now >= key.expires_at - LIFE_S * 1000 * (1 - RENEWED_AFTER)
    return old or key.last_used_at is None or key.origin != origin


def still_superseded(tx: Connection, key_id: str) -> bool:
    """Not closed meanwhile by somebody who readmitted or retired the machine."""
    row = tx.execute(select(principal_keys).where(principal_keys.c.id == key_id)).first()
    return row is not None and (row.retired_at is None or row.superseded_by is not None)


def forget_old_keys(tx: Connection, now: int) -> int:
    old = principal_keys.c.retired_at < now - REMEMBERED_S * 1000
    return delete_some(tx, principal_keys, principal_keys.c.generation.is_not(None) & old)


def _proven(tx: Connection, vault: Any, assertion: str, row: Row[Any], kid: str | None, now: int) -> Row[Any]:
    """The good key that signed it. Its rows stay locked, so that two uses are one after the other."""
    mine = select(principal_keys).where(_of(row.id)).order_by(principal_keys.c.id)
    keys = list(tx.execute(mine.with_for_update()))
    shown = [one for one in keys if (kid in (one.id, one.thumbprint) if kid else one.retired_at is None)]
    if not shown and row.disabled_at is None:
        raise IdentityUnknown(f"{row.name} has no such key.")
    claims, key_id = authentication.verified(tx, assertion, shown or keys, row.id, now)
    key = next(one for one in keys if one.id == key_id)
    if row.disabled_at is not None:
        raise IdentityClosed(f"The machine {row.name} is suspended or retired.")
    if key.retired_at is not None:
        raise _retired(vault, row, key, claims)
    authentication.mark_used(tx, key.id, now)
    if key.last_used_at is None:
        _retire_former(tx, row.id, key, now)
    return key


def _retired(vault: Any, row: Row[Any], key: Row[Any], claims: dict[str, Any]) -> Exception:
    if key.superseded_by is None:
        return IdentityClosed(f"This key of {row.name} was closed when the machine was enrolled again.")
    challenge = vault.mac(f"superseded {key.id} {key.superseded_by}")
    if claims.get("challenge") == challenge:
        return IdentityCloned(row.id, key.id, f"A copy of {row.name} lives by a key that a newer one has replaced.")
    sentence = f"This key of {row.name} was replaced by a newer one, which has been used."
    return IdentitySuperseded(row.id, key.id, sentence, challenge)


def _retire_former(tx: Connection, node_id: str, key: Row[Any], now: int) -> None:
    former = [_of(node_id), principal_keys.c.retired_at.is_(None), principal_keys.c.id != key.id]
    gone = update(principal_keys).where(*former, principal_keys.c.generation < (key.generation or 0))
    ids = list(tx.execute(gone.values(retired_at=now, superseded_by=key.id).returning(principal_keys.c.id)).scalars())
    authentication.close_sessions(tx, sessions.c.key_id.in_(ids), now=now)


def _of(node_id: str) -> Any:
    return principal_keys.c.principal_id == node_id


def _key(tx: Connection, key_id: str) -> Row[Any]:
    return tx.execute(select(principal_keys).where(principal_keys.c.id == key_id)).one()
