"""Storage of runtime secrets: sealed in the database, and encrypted to the service account that receives them.

A stored secret is bound to its tenant, instance, name and version: in another row it cannot be unsealed.
"""

import secrets

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from ..authz.context import Context
from ..custody.vault import Vault
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..kit.vault import declare_sealed
from ..kit.wire import canonical
from ..operations.targets import Subject
from . import deliveries
from .rows import SecretId, SecretRow
from .sealing import sealed_to_caller
from .tables import runtime_secrets

ALPHABETS = {
    "alphanumeric": "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789",
    "hex": "0123456789abcdef",
    "digits": "0123456789",
}

_S = runtime_secrets.c
_SECRETS = Query(select(runtime_secrets), SecretRow)
_NEWEST_VERSION = select(func.max(_S.version)).where(
    _S.instance_id == bindparam("instance"), _S.name == bindparam("name")
)

declare_sealed(
    runtime_secrets,
    "sealed",
    tenant="tenant_id",
    bound_to=lambda row: _bound_to(row.tenant_id, row.instance_id, row.name, row.version),
)


def generated(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(ALPHABETS[alphabet]) for _ in range(length))


def keep(ctx: Context, vault: Vault, subject: Subject, name: str, value: str, origin: str) -> SecretRow:
    """Store the next version of the secret and return its row. The caller has locked the instance's row, so that
    version numbers are unique."""
    newest = ctx.tx.execute(_NEWEST_VERSION, {"instance": subject.id, "name": name}).scalar()
    version = (newest or 0) + 1
    place = _bound_to(subject.tenant_id, subject.id, name, version)
    row = SecretRow(
        id=SecretId(new_id("sec")),
        tenant_id=subject.tenant_id,
        project_id=subject.project_id,
        instance_id=subject.id,
        name=name,
        version=version,
        origin=origin,
        sealed=vault.seal(ctx.tx, subject.tenant_id, value.encode(), place),
        created_by=ctx.principal.id,
        created_at=ctx.now,
    )
    ctx.tx.execute(insert(runtime_secrets).values(**vars(row)))
    return row


def secrets_of(instance_id: str) -> Query[SecretRow]:
    return _SECRETS.where(runtime_secrets.c.instance_id == instance_id)


def forget(tx: Connection, instance_id: str, name: str | None = None) -> int:
    """Delete all versions of a secret or, without a name, all secrets of the instance;
    return the number of versions."""
    s = runtime_secrets.c
    mine = [s.instance_id == instance_id, *([s.name == name] if name else [])]
    deliveries.forget_secrets(tx, list(tx.execute(select(s.id).where(*mine)).scalars()))
    return tx.execute(delete(runtime_secrets).where(*mine)).rowcount


def wanted(tx: Connection, instance_id: str, name: str, version: int | None) -> SecretRow:
    """Return the requested version of the secret, or the newest if `version` is None;
    raise NotFound if there is none."""
    s = runtime_secrets.c
    query = secrets_of(instance_id).where(s.name == name)
    row = (query.where(s.version == version) if version else query).order_by(s.version.desc()).first(tx)
    if row is None:
        raise NotFound(f"The instance has no secret named {name!r} (or no such version).")
    return row


def delivered(ctx: Context, vault: Vault, row: SecretRow, *, operation_id: str, epoch: int) -> str:
    """Record the delivery and return the value, encrypted to the caller. Raises AlreadyDelivered if this claim has
    received the version before."""
    deliveries.deliver_secret_once(ctx, row, operation_id, epoch)
    place = _bound_to(row.tenant_id, row.instance_id, row.name, row.version)
    value = vault.unseal(ctx.tx, row.tenant_id, row.sealed, place)
    claims = {
        "operation_id": operation_id,
        "claim_epoch": epoch,
        "instance_id": row.instance_id,
        "name": row.name,
        "version": row.version,
        "value": value.decode(),
    }
    return sealed_to_caller(ctx, vault, claims)


def _bound_to(tenant_id: str, instance_id: str, name: str, version: int) -> str:
    return canonical(["runtime-secret", tenant_id, instance_id, name, version])
