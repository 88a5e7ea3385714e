"""The vault: seals secrets in the database with a data key per tenant, which is wrapped by the holder's master key.

A sealed value is bound to its tenant, its data key's version and its purpose: anywhere else it cannot be unsealed. The
platform's own root key (for signatures, and for tokens that are verified without being stored) is stored like a data
key, wrapped. The holder unwraps each data key once per cache period, not per secret.
"""

import base64
import hmac
import os
import threading
import time
from collections.abc import Callable
from hashlib import sha256
from typing import TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import Connection, select

from ..kit.db import insert_into
from ..kit.store_facts import store_facts
from ..kit.vault import Vault
from ..kit.wire import canonical
from .data_keys import DataKeyRow, key_row, newest_key
from .key_providers.embedded import Embedded
from .key_providers.port import CustodyFailed, Holder
from .tables import data_keys

__all__ = ["PLATFORM", "ROOT", "DataKeyVault", "Vault", "open_vault", "read_vault", "unwrap"]

PLATFORM = "platform"  # owner of secrets that belong to no tenant
ROOT = "root"
_FORMAT = b"gv2:"
CACHE_S = 300.0  # how long an unwrapped data key is used before the holder is asked again
Write: TypeAlias = Callable[[Callable[[Connection], DataKeyRow]], DataKeyRow]  # one transaction


class DataKeyVault:
    def __init__(self, holder: Holder, root: bytes, *, cache_s: float = CACHE_S) -> None:
        self.holder = holder
        self._root = root
        self._cache_s = cache_s
        self._opened: dict[
            tuple[str, int, bytes], tuple[float, bytes]
        ] = {}  # by row contents, so a changed row is not served from the cache
        self._lock = threading.Lock()

    def seal(self, tx: Connection, tenant_id: str, plain: bytes, bound_to: str) -> bytes:
        row = newest_key(tx, tenant_id) or self._first_key(tx, tenant_id)
        nonce = os.urandom(12)
        cipher = AESGCM(self._data_key(row))
        return (
            _FORMAT
            + row.version.to_bytes(4, "big")
            + nonce
            + cipher.encrypt(nonce, plain, _where(tenant_id, row.version, bound_to))
        )

    def unseal(self, tx: Connection, tenant_id: str, sealed: bytes, bound_to: str) -> bytes:
        try:
            if not sealed.startswith(_FORMAT):  # sealed by the first release, under the root key itself
                return AESGCM(self._root).decrypt(sealed[:12], sealed[12:], bound_to.encode())
            version, nonce, content = int.from_bytes(sealed[4:8], "big"), sealed[8:20], sealed[20:]
            key = self._data_key(key_row(tx, tenant_id, version))
            return AESGCM(key).decrypt(nonce, content, _where(tenant_id, version, bound_to))
        except (InvalidTag, ValueError) as error:
            raise CustodyFailed("A sealed value cannot be unsealed in its row.") from error

    @staticmethod
    def version_of(sealed: bytes) -> int:
        """Return the version of the data key that sealed the value; 0 for values sealed by the first release."""
        return int.from_bytes(sealed[4:8], "big") if sealed.startswith(_FORMAT) else 0

    def mac(self, message: str) -> str:
        """Return a keyed hash of the message, for tokens that are verified without being stored."""
        digest = hmac.new(self._root, b"mac:" + message.encode(), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def sign(self, purpose: str, message: bytes) -> bytes:
        """Sign the message with the Ed25519 key of this purpose."""
        return self._signing_key(purpose).sign(message)

    def public_key(self, purpose: str) -> bytes:
        return self._signing_key(purpose).public_key().public_bytes_raw()

    def forget(self) -> None:
        """Clear the cached data keys, so that the next use unwraps them again."""
        with self._lock:
            self._opened.clear()

    def _signing_key(self, purpose: str) -> Ed25519PrivateKey:
        """Derive the signing key of a purpose from the root key.
        The key is not stored, so it cannot be replaced in the database."""
        derive = HKDF(SHA256(), 32, salt=None, info=f"gpuaas/sign/{purpose}".encode())
        return Ed25519PrivateKey.from_private_bytes(derive.derive(self._root))

    def _first_key(self, tx: Connection, tenant_id: str) -> DataKeyRow:
        add_key(tx, self.holder, tenant_id, 1, os.urandom(32))
        return key_row(tx, tenant_id, 1)  # two concurrent inserts: the first one wins

    def _data_key(self, row: DataKeyRow) -> bytes:
        now, this = time.monotonic(), (row.owner, row.version, row.wrapped)
        with self._lock:
            known = self._opened.get(this)
        if known and now < known[0]:
            return known[1]
        key = unwrap(self.holder, row)
        with self._lock:
            self._opened[this] = (now + self._cache_s, key)
        return key


def open_vault(write: Write, holder: Holder, *, cache_s: float = CACHE_S) -> DataKeyVault:
    """Open the vault with the root key of the database.
    The first core that starts on a database creates the root key."""
    return DataKeyVault(holder, unwrap(holder, write(lambda tx: _root_row(tx, holder))), cache_s=cache_s)


def read_vault(tx: Connection, holder: Holder) -> DataKeyVault:
    """Open the vault for read-only commands. Raises RuntimeError if the
    database has no root key yet; none is created here."""
    row = newest_key(tx, ROOT)
    if row is None:
        raise RuntimeError("this database has no root key yet: start a core on it once with `gpuaas-core serve`")
    return DataKeyVault(holder, unwrap(holder, row))


def unwrap(holder: Holder, row: DataKeyRow) -> bytes:
    if row.holder != holder.kind:
        raise CustodyFailed(f"This data key is held by {row.holder!r}, but the core is configured for {holder.kind!r}.")
    return holder.unwrap(row.holder_version, row.wrapped, wrapped_for(row.owner, row.version))


def wrapped_for(owner: str, version: int) -> str:
    return f"data-key/{owner}/{version}"


def _root_row(tx: Connection, holder: Holder) -> DataKeyRow:
    row = newest_key(tx, ROOT)
    if row is None:
        add_key(tx, holder, ROOT, 1, _first_root(tx, holder))
        row = key_row(tx, ROOT, 1)
    return row


def _first_root(tx: Connection, holder: Holder) -> bytes:
    """Return the root key for a database that has none: a random key or, for a database of the first release, the key
    that it used, so that its tokens and signatures stay valid."""
    of_first_release = tx.execute(select(store_facts.c.value).where(store_facts.c.name == "master_key")).first()
    if of_first_release and not isinstance(holder, Embedded):
        raise RuntimeError("start once with the embedded custody of this database, then run `gpuaas-core custody move`")
    return holder.first_key if of_first_release and isinstance(holder, Embedded) else os.urandom(32)


def add_key(tx: Connection, holder: Holder, owner: str, version: int, key: bytes) -> None:
    holder_version, wrapped = holder.wrap(key, wrapped_for(owner, version))
    new = insert_into(tx, data_keys).values(
        owner=owner,
        version=version,
        holder=holder.kind,
        holder_version=holder_version,
        wrapped=wrapped,
        created_at=int(time.time() * 1000),
    )
    tx.execute(new.on_conflict_do_nothing())


def _where(tenant_id: str, version: int, bound_to: str) -> bytes:
    return canonical([tenant_id, version, bound_to]).encode()
