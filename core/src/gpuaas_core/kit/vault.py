"""The interface of the vault, for rooms that may not import its implementation (`custody/vault.py`).

Rooms also register their columns with encrypted values here, so that all values are encrypted again when the data key
changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Column, Connection, Table

from .rows import RawRow


class Vault(Protocol):
    def mac(self, message: str) -> str:
        """Compute a keyed fingerprint of the message with the platform's root key."""
        ...

    def seal(self, tx: Connection, tenant_id: str, plain: bytes, bound_to: str) -> bytes:
        """Encrypt `plain` with the tenant's data key. The result can be decrypted only with the same tenant and the
        same `bound_to`."""
        ...

    def unseal(self, tx: Connection, tenant_id: str, sealed: bytes, bound_to: str) -> bytes: ...

    def sign(self, purpose: str, message: bytes) -> bytes:
        """Sign the message with the Ed25519 key of this purpose."""
        ...

    def public_key(self, purpose: str) -> bytes: ...


@dataclass(frozen=True)
class SealedColumn:
    table: Table
    column: Column[Any]
    tenant: Column[Any]
    bound_to: Callable[[RawRow], str]


SEALED: list[SealedColumn] = []


def declare_sealed(table: Table, column: str, *, tenant: str, bound_to: Callable[[RawRow], str]) -> None:
    SEALED.append(SealedColumn(table, table.c[column], table.c[tenant], bound_to))
