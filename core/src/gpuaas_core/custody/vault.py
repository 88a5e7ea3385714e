"""The embedded vault: AES-256-GCM under a master key in a file only the platform can read.

The additional data names tenant, kind and purpose, so a sealed value moved to another row does not open.
"""

import base64
import contextlib
import hmac
import os
import stat
import tempfile
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from sqlalchemy import Connection, select

from ..kit.db import insert_into
from ..kit.problems import Problem
from ..ledger.tables import store_facts


class CustodyFailed(Problem):
    status, code, title = 503, "custody_unavailable", "The key custody cannot open this secret"
    way_out = "The platform operator must restore the master key that belongs to this store."


class Vault:
    def __init__(self, master_key: bytes) -> None:
        self._key = master_key
        self._cipher = AESGCM(master_key)

    @classmethod
    def in_file(cls, path: Path) -> "Vault":
        """Opens the master key, making it at the first start. Refuses a file others can read."""
        if not path.exists():
            _write_new_key(path)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise RuntimeError(f"{path} can be read by others (mode {mode:o}): chmod 600 it and start again")
        return cls(base64.b64decode(path.read_bytes()))

    def seal(self, plain: bytes, bound_to: str) -> bytes:
        nonce = os.urandom(12)
        return nonce + self._cipher.encrypt(nonce, plain, bound_to.encode())

    def unseal(self, sealed: bytes, bound_to: str) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:12], sealed[12:], bound_to.encode())
        except (InvalidTag, ValueError) as error:
            raise CustodyFailed("A sealed value does not open with the present master key.") from error

    def mac(self, message: str) -> str:
        """A keyed fingerprint, for tokens that can be checked without being stored."""
        digest = hmac.new(self._key, b"mac:" + message.encode(), sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")

    def sign(self, purpose: str, message: bytes) -> bytes:
        """An Ed25519 signature; whoever has the public key can check it, and cannot make one."""
        return self._signing_key(purpose).sign(message)

    def public_key(self, purpose: str) -> bytes:
        return self._signing_key(purpose).public_key().public_bytes_raw()

    def _signing_key(self, purpose: str) -> Ed25519PrivateKey:
        """Derived from the master key, one per purpose: there is no row in the store that could be exchanged."""
        derive = HKDF(SHA256(), 32, salt=None, info=f"gpuaas/sign/{purpose}".encode())
        return Ed25519PrivateKey.from_private_bytes(derive.derive(self._key))


def check_belongs(tx: Connection, vault: Vault) -> None:
    """The first core leaves a fingerprint of its key; one with another key could open nothing, and must not start."""
    mine = vault.mac("the master key of this store")
    first = insert_into(tx, store_facts).values(name="master_key", value=mine)
    tx.execute(first.on_conflict_do_nothing())
    kept = tx.execute(select(store_facts.c.value).where(store_facts.c.name == "master_key")).scalar_one()
    if kept != mine:
        raise RuntimeError("this master.key does not belong to this store: every core needs the store's own key")


def _write_new_key(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)  # mode 600
    with os.fdopen(handle, "wb") as file:
        file.write(base64.b64encode(os.urandom(32)))
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):  # of two cores starting at once the first one's key stays
        os.link(draft, path)
    os.unlink(draft)
