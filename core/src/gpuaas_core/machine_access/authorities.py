"""The SSH authorities of a tenant: user authorities sign the login certificates of people and controllers, host
authorities sign the certificates of hosts.

Exactly one authority per purpose signs. During a rotation another authority is trusted beside it: one that does not
sign yet (`next`) or no longer signs (`retiring`). A user certificate has exactly one principal (the allocation), is
valid for five minutes (one hour for observation) and allows no forwarding. A host certificate has exactly one principal
(the node id), so that an address that moves to another node is detected.
"""

import base64
import hashlib
import secrets
from collections.abc import Sequence

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import ssh
from sqlalchemy import Connection, bindparam, select, update

from ..custody.vault import Vault
from ..kit.db import insert_new
from ..kit.rows import Query
from ..kit.vault import declare_sealed
from .errors import SshKeyNotAccepted
from .rows import AuthorityRow, Certificate, Rotation
from .states import ACTIVE, AUTHORITY, RETIRED
from .tables import ssh_authorities

USER, HOST = "user", "host"
USER_CERTIFICATE_S = 300
OBSERVER_CERTIFICATE_S = 3600
HOST_CERTIFICATE_S = 30 * 24 * 3600
BACKDATE_S = 60


_s = ssh_authorities.c
_OF = (_s.tenant_id == bindparam("tenant")) & (_s.purpose == bindparam("purpose"))
_ALIVE = select(ssh_authorities).where(_OF, _s.state != RETIRED).order_by(_s.number)
_TRUSTED, _TRUSTED_LOCKED = Query(_ALIVE, AuthorityRow), Query(_ALIVE.with_for_update(), AuthorityRow)
_SIGNING = Query(select(ssh_authorities).where(_OF, _s.state == ACTIVE).with_for_update(read=True), AuthorityRow)
_NUMBERS = select(_s.number).where(_OF).order_by(_s.number)
_ALL = Query(
    select(ssh_authorities).where(_s.tenant_id == bindparam("tenant")).order_by(_s.purpose.desc(), _s.number.desc()),
    AuthorityRow,
)
_MOVING = Query(
    select(_s.tenant_id, _s.purpose)
    .where(_s.state.not_in([ACTIVE, RETIRED]))
    .distinct()
    .order_by(_s.tenant_id, _s.purpose),
    Rotation,
)

declare_sealed(
    ssh_authorities,
    "sealed_private_key",
    tenant="tenant_id",
    bound_to=lambda row: bound_to(row.tenant_id, row.purpose, row.number),
)


def ensure_authorities(tx: Connection, vault: Vault, tenant_id: str, now: int) -> None:
    """Create the user and host authority of a tenant if they do not exist. Called when the tenant enrols a node."""
    for purpose in (USER, HOST):
        if not numbers(tx, tenant_id, purpose):
            add(tx, vault, tenant_id, purpose, 1, ACTIVE, now)  # two concurrent first enrolments create one key pair


def add(tx: Connection, vault: Vault, tenant_id: str, purpose: str, number: int, state: str, now: int) -> bool:
    """Create an authority with a new key pair and return True. Return False if another transaction has added it
    already."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    row = {
        "tenant_id": tenant_id,
        "purpose": purpose,
        "number": number,
        "state": state,
        "public_key": public.decode(),
        "sealed_private_key": vault.seal(tx, tenant_id, private, bound_to(tenant_id, purpose, number)),
        "created_at": now,
        "activated_at": now if state == ACTIVE else None,
    }
    return insert_new(tx, ssh_authorities, **row)


def trusted(tx: Connection, tenant_id: str, purpose: str, *, lock: bool = False) -> list[AuthorityRow]:
    """Return all authorities of this purpose that are not retired, the newest last. With `lock`, wait for certificates
    that are being signed, and let none be signed until the transaction ends."""
    if lock:  # read after the lock: the transaction we waited for may have added one
        _TRUSTED_LOCKED.all(tx, tenant=tenant_id, purpose=purpose)
    return _TRUSTED.all(tx, tenant=tenant_id, purpose=purpose)


def signing(tx: Connection, tenant_id: str, purpose: str) -> AuthorityRow:
    """Lock and return the authority that signs, so that the certificates it signs are recorded before another authority
    replaces it."""
    of = {"tenant": tenant_id, "purpose": purpose}
    # another authority may have taken over while we waited for the lock: the second query finds it
    return _SIGNING.first(tx, **of) or _SIGNING.one(tx, **of)


def numbers(tx: Connection, tenant_id: str, purpose: str) -> list[int]:
    return list(tx.execute(_NUMBERS, {"tenant": tenant_id, "purpose": purpose}).scalars())


def all_of(tx: Connection, tenant_id: str) -> list[AuthorityRow]:
    return _ALL.all(tx, tenant=tenant_id)


def move(tx: Connection, row: AuthorityRow, action: str, now: int) -> None:
    """Apply a transition to the authority. Retiring deletes its private key, so that it can never sign again."""
    state = AUTHORITY.after(row.state, action)
    change: dict[str, str | int | None] = {"state": state}
    change |= {"activated_at": now} if state == ACTIVE else {}
    change |= {"retired_at": now, "sealed_private_key": None} if state == RETIRED else {}
    this = (_s.tenant_id == row.tenant_id) & (_s.purpose == row.purpose) & (_s.number == row.number)
    tx.execute(update(ssh_authorities).where(this).values(**change))


def under_way(tx: Connection) -> list[Rotation]:
    """Return all rotations in progress."""
    return _MOVING.all(tx)


def fingerprint(public_key: str) -> str:
    digest = hashlib.sha256(base64.b64decode(public_key.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def sign_user(
    tx: Connection,
    vault: Vault,
    tenant_id: str,
    *,
    key_line: str,
    principal: str,
    key_id: str,
    now: int,
    source_addresses: Sequence[str] = (),
    lives_s: int = USER_CERTIFICATE_S,
) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.USER, principal, key_id, now, lives_s)
    builder = builder.add_extension(b"permit-pty", b"")
    if source_addresses:
        builder = builder.add_critical_option(b"source-address", ",".join(source_addresses).encode())
    return _sign(tx, vault, tenant_id, USER, builder, lives_s)


def sign_host(tx: Connection, vault: Vault, tenant_id: str, *, key_line: str, node_id: str, now: int) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.HOST, node_id, node_id, now, HOST_CERTIFICATE_S)
    return _sign(tx, vault, tenant_id, HOST, builder, HOST_CERTIFICATE_S)


def _builder(
    line: str, kind: ssh.SSHCertificateType, principal: str, key_id: str, now: int, lives_s: int
) -> ssh.SSHCertificateBuilder:
    if not principal:
        raise ValueError("a certificate without a principal would be valid for every login")
    start = now // 1000 - BACKDATE_S
    return (
        ssh.SSHCertificateBuilder()
        .public_key(read_public_key(line))
        .serial(secrets.randbelow(2**63 - 1) + 1)  # serial 0 cannot be revoked
        .type(kind)
        .key_id(key_id.encode())
        .valid_principals([principal.encode()])
        .valid_after(start)
        .valid_before(now // 1000 + lives_s)
    )


def _sign(
    tx: Connection, vault: Vault, tenant_id: str, purpose: str, builder: ssh.SSHCertificateBuilder, lives_s: int
) -> Certificate:
    row = signing(tx, tenant_id, purpose)
    if row.sealed_private_key is None:
        raise RuntimeError("an active SSH authority has no private key")
    sealed = vault.unseal(tx, tenant_id, row.sealed_private_key, bound_to(tenant_id, purpose, row.number))
    private = serialization.load_ssh_private_key(sealed, None)
    if not isinstance(private, Ed25519PrivateKey):
        raise RuntimeError("an SSH authority key is not Ed25519")
    certificate = builder.sign(private)
    return Certificate(certificate.public_bytes().decode(), certificate.serial, lives_s, row.number)


def read_public_key(line: str) -> Ed25519PublicKey:
    parts = line.split()
    if len(parts) < 2 or parts[0] != "ssh-ed25519" or len(line) > 1000:
        raise SshKeyNotAccepted("Only Ed25519 keys are certified.")
    try:
        key = serialization.load_ssh_public_key(" ".join(parts[:2]).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SshKeyNotAccepted("This line is not an OpenSSH public key.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise SshKeyNotAccepted("Only Ed25519 keys are certified.")
    return key


def bound_to(tenant_id: str, purpose: str, number: int) -> str:
    """Return the text that the vault needs to unseal the private key of this authority. For the first authority it has
    no number, for compatibility."""
    return f"ssh-authority/{tenant_id}/{purpose}" + (f"/{number}" if number > 1 else "")
