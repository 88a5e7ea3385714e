"""Runtime secrets: sealed in the store, and sealed again for the one who may read them. Nobody else ever sees one.

A stored secret is bound to its tenant, instance, name and version: moved to another row it does not open. On its way
out it is signed by the platform, then encrypted (JWE, ECDH-ES) to the reader's own registered key, for one claim.
"""

import base64
import secrets
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from joserfc import jwe
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, Row, delete, func, insert, select

from ..access.context import Context
from ..kit.ids import new_id
from ..kit.problems import NotFound, Problem
from ..kit.sealed import declare_sealed
from ..kit.wire import canonical
from ..tenancy.reads import key_in_use
from .tables import runtime_secrets
from .vault import Vault

PURPOSE = "secret-delivery"
LIVES_S = 300
P25519 = 2**255 - 19
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


class NoKeyToSealTo(Problem):
    status, code, title = 409, "no_key_to_seal_to", "The caller has no registered key"
    way_out = "Secrets are sealed to a service account's public key: read them as the app's controller."


def generated(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(ALPHABETS[alphabet]) for _ in range(length))


def keep(ctx: Context, vault: Vault, instance: Row[Any], name: str, value: str, origin: str) -> Row[Any]:
    """The next version of the name. The instance's row is locked by the caller, so no two are the next one."""
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
    """All versions of a name; without a name, all of the instance."""
    s = runtime_secrets.c
    mine = [s.instance_id == instance_id, *([s.name == name] if name else [])]
    return tx.execute(delete(runtime_secrets).where(*mine)).rowcount


def delivered(
    ctx: Context, vault: Vault, instance: Row[Any], name: str, version: int | None, *, operation_id: str, epoch: int
) -> tuple[Row[Any], str]:
    """The row, and its value for this caller's eyes only. The newest version unless one is named."""
    s = runtime_secrets.c
    query = secrets_of(instance.id).where(s.name == name)
    row = ctx.tx.execute((query.where(s.version == version) if version else query).order_by(s.version.desc())).first()
    if row is None:
        raise NotFound(f"The instance has no such secret {name!r}.")
    jwk = key_in_use(ctx.tx, ctx.principal.id)
    if jwk is None:
        raise NoKeyToSealTo(f"{ctx.principal.name} has no public key.")
    bound_to = _bound_to(instance.tenant_id, instance.id, name, row.version)
    value = vault.unseal(ctx.tx, instance.tenant_id, row.sealed, bound_to)
    claims = {
        "iss": "gpuaas",
        "aud": ctx.principal.id,
        "jti": secrets.token_hex(16),
        "iat": ctx.now // 1000,
        "exp": ctx.now // 1000 + LIVES_S,
        "operation_id": operation_id,
        "claim_epoch": epoch,
        "instance_id": instance.id,
        "name": name,
        "version": row.version,
        "value": value.decode(),
    }
    return row, _encrypted(_signed(vault, claims), jwk)


def signing_jwk(vault: Vault) -> dict[str, str]:
    """With which a reader checks that the platform sent it."""
    return {"kty": "OKP", "crv": "Ed25519", "x": _b64(vault.public_key(PURPOSE))}


def _signed(vault: Vault, claims: dict[str, Any]) -> str:
    head, body = _b64(b'{"alg":"EdDSA"}'), _b64(canonical(claims).encode())
    return f"{head}.{body}.{_b64(vault.sign(PURPOSE, f'{head}.{body}'.encode()))}"


def _encrypted(text: str, jwk: dict[str, Any]) -> str:
    key = OKPKey.import_key(_agreement_key(jwk)) if jwk["kty"] == "OKP" else ECKey.import_key(jwk)
    head = {"alg": "ECDH-ES", "enc": "A256GCM", "cty": "JWT"}
    return jwe.encrypt_compact(head, text, key, algorithms=["ECDH-ES", "A256GCM"])


def _agreement_key(jwk: dict[str, Any]) -> dict[str, Any]:
    """Accounts register an Ed25519 key to sign with; the same point on Curve25519 agrees on keys (RFC 7748, 4.1)."""
    raw = base64.urlsafe_b64decode(jwk["x"] + "==")
    Ed25519PublicKey.from_public_bytes(raw)
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    u = (1 + y) * pow(1 - y, -1, P25519) % P25519
    return {"kty": "OKP", "crv": "X25519", "x": _b64(u.to_bytes(32, "little"))}


def _bound_to(tenant_id: str, instance_id: str, name: str, version: int) -> str:
    return canonical(["runtime-secret", tenant_id, instance_id, name, version])


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
