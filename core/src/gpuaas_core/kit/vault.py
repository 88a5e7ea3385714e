"""What rooms below custody need of the vault. The implementation is `custody/vault.py`, which they cannot import."""

from typing import Protocol

from sqlalchemy import Connection


class Vault(Protocol):
    def mac(self, message: str) -> str:
        """A keyed fingerprint of the message, under the platform's root key."""
        ...

    def seal(self, tx: Connection, tenant_id: str, plain: bytes, bound_to: str) -> bytes:
        """Encrypts under the tenant's data key; the result opens only for the same tenant and purpose."""
        ...

    def unseal(self, tx: Connection, tenant_id: str, sealed: bytes, bound_to: str) -> bytes: ...
