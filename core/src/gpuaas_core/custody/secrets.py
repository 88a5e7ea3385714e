"""Runtime secrets: sealed in the database, and encrypted to the one service account that may read them.

A stored secret is bound to its tenant, instance, name and version: in another row it cannot be unsealed.
"""

import secrets
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from ..authz.context import Context
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.sealed_columns import declare_sealed
from ..kit.wire import canonical
from . import redemptions
from .delivery import sealed_to_caller
from .tables import runtime_secrets
from .vault import Vault

ALPHABETS = {
    "alphanumeric": "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789",
    "hex": "0123456789abcdef",
    "digits": "0123456789",
}


declare_sealed(
    runtime_secrets,
    "sealed",
    tenant="tenant_id",
    bound_to=lambda row: _bound_to(row.tenant_id, row.instance_id, row.name, row.version),
)


def generated(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(ALPHABETS[alphabet]) for _ in range(length))


def keep(ctx: Context, vault: Vault, instance: Row[Any], name: str, value: str, origin: str) -> Row[Any]:
    """The next version of the name. The caller has locked the instance's row, so versions are unique."""
    s = runtime_secrets.c
    mine = (s.instance_id == instance.id) & (s.name == name)
    version = (ctx.tx.execute(select(func.max(s.version)).where(mine)).scalar() or 0) + 1
    row = {
        "id": new_id("sec"),
        "tenant_id": instance.tenant_id,
        "project_id": instance.project_id,
        "instance_id": instance.id,
        "name": name,
        "version": version,
        "origin": origin,
        "created_by": ctx.principal.id,
        "created_at": ctx.now,
    }
    sealed = vault.seal(
        ctx.tx, instance.tenant_id, value.encode(), _bound_to(instance.tenant_id, instance.id, name, version)
    )
    ctx.tx.execute(insert(runtime_secrets).values(**row, sealed=sealed))
    return ctx.tx.execute(select(runtime_secrets).where(s.id == row["id"])).one()


def secrets_of(instance_id: str) -> Any:
    return select(runtime_secrets).where(runtime_secrets.c.instance_id == instance_id)


def forget(tx: Connection, instance_id: str, name: str | None = None) -> int:
    """Delete all versions of a name; without a name, all secrets of the instance."""
    s = runtime_secrets.c
    mine = [s.instance_id == instance_id, *([s.name == name] if name else [])]
    redemptions.forget_secrets(tx, list(tx.execute(select(s.id).where(*mine)).scalars()))
    return tx.execute(delete(runtime_secrets).where(*mine)).rowcount


def wanted(tx: Connection, instance_id: str, name: str, version: int | None) -> Row[Any]:
    """The newest version unless the request names one."""
    s = runtime_secrets.c
    query = secrets_of(instance_id).where(s.name == name)
    row = tx.execute((query.where(s.version == version) if version else query).order_by(s.version.desc())).first()
    if row is None:
        raise NotFound(f"The instance has no secret named {name!r} (or no such version).")
    return row


def delivered(ctx: Context, vault: Vault, instance: Row[Any], row: Row[Any], *, operation_id: str, epoch: int) -> str:
    """The value, encrypted to this caller, once per claim."""
    redemptions.deliver_secret_once(ctx, row, operation_id, epoch)
    bound_to = _bound_to(instance.tenant_id, instance.id, row.name, row.version)
    value = vault.unseal(ctx.tx, instance.tenant_id, row.sealed, bound_to)
    claims = {
        "operation_id": operation_id,
        "claim_epoch": epoch,
        "instance_id": instance.id,
        "name": row.name,
        "version": row.version,
        "value": value.decode(),
    }
    return sealed_to_caller(ctx, vault, claims)


def _bound_to(tenant_id: str, instance_id: str, name: str, version: int) -> str:
    return canonical(["runtime-secret", tenant_id, instance_id, name, version])
