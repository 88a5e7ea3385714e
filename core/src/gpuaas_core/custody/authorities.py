"""The SSH authorities of a tenant: user authorities sign logins of people and controllers, host authorities sign host
keys.

One authority per purpose signs; during a rotation others are trusted already (`next`) or still (`retiring`). A user
certificate has exactly one principal (the allocation), lives five minutes and forwards nothing. A host certificate has
exactly one principal (the node id), so an address that moves to another node is detected.
"""

import base64
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import ssh
from sqlalchemy import Connection, Row, select, update

from ..kit.db import insert_new
from ..kit.problems import Problem
from ..kit.sealed_columns import declare_sealed
from .states import ACTIVE, AUTHORITY, RETIRED
from .tables import ssh_authorities
from .vault import Vault

USER, HOST = "user", "host"
USER_CERTIFICATE_S = 300
HOST_CERTIFICATE_S = 30 * 24 * 3600
BACKDATE_S = 60


class SshKeyNotAccepted(Problem):
    status, code, title = 422, "ssh_key_not_accepted", "SSH public key not accepted"
    way_out = "Send one line of an Ed25519 OpenSSH public key (`ssh-ed25519 AAAA…`)."


declare_sealed(
    ssh_authorities,
    "sealed_private_key",
    tenant="tenant_id",
    bound_to=lambda row: bound_to(row.tenant_id, row.purpose, row.number),
)


@dataclass(frozen=True)
class Certificate:
    text: str
    serial: int
    lives_s: int
    authority: int  # the number of the authority that signed it


def ensure_authorities(tx: Connection, vault: Vault, tenant_id: str, now: int) -> None:
    """Created when the tenant enrols its first node."""
    for purpose in (USER, HOST):
        if not numbers(tx, tenant_id, purpose):
            add(tx, vault, tenant_id, purpose, 1, ACTIVE, now)  # two concurrent first enrolments create one key pair


def add(tx: Connection, vault: Vault, tenant_id: str, purpose: str, number: int, state: str, now: int) -> bool:
    """False: another transaction has added it already."""
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


def trusted(tx: Connection, tenant_id: str, purpose: str, *, lock: bool = False) -> list[Row[Any]]:
    """All authorities that must be trusted, the newest last. `lock`: waits until nothing is being signed."""
    alive = _of(tenant_id, purpose) & (ssh_authorities.c.state != RETIRED)
    query = select(ssh_authorities).where(alive).order_by(ssh_authorities.c.number)
    if lock:
        tx.execute(query.with_for_update())  # read after the lock: the transaction we waited for may have added one
    return list(tx.execute(query))


def signing(tx: Connection, tenant_id: str, purpose: str) -> Row[Any]:
    """Locked until the transaction ends: what it signs is recorded before another authority takes over."""
    active = _of(tenant_id, purpose) & (ssh_authorities.c.state == ACTIVE)
    query = select(ssh_authorities).where(active).with_for_update(read=True)
    # another authority may have taken over while we waited for the lock: the second query finds it
    return tx.execute(query).first() or tx.execute(query).one()


def numbers(tx: Connection, tenant_id: str, purpose: str) -> list[int]:
    known = select(ssh_authorities.c.number).where(_of(tenant_id, purpose))
    return list(tx.execute(known.order_by(ssh_authorities.c.number)).scalars())


def all_of(tx: Connection, tenant_id: str) -> list[Row[Any]]:
    mine = select(ssh_authorities).where(ssh_authorities.c.tenant_id == tenant_id)
    return list(tx.execute(mine.order_by(ssh_authorities.c.purpose.desc(), ssh_authorities.c.number.desc())))


def move(tx: Connection, row: Row[Any], action: str, now: int) -> None:
    """Deletes the private key of a retired authority, so that it can never sign again."""
    state = AUTHORITY.after(row.state, action)
    change: dict[str, Any] = {"state": state}
    change |= {"activated_at": now} if state == ACTIVE else {}
    change |= {"retired_at": now, "sealed_private_key": None} if state == RETIRED else {}
    this = _of(row.tenant_id, row.purpose) & (ssh_authorities.c.number == row.number)
    tx.execute(update(ssh_authorities).where(this).values(**change))


def under_way(tx: Connection) -> list[tuple[str, str]]:
    """The tenants and purposes with a rotation in progress."""
    which = (ssh_authorities.c.tenant_id, ssh_authorities.c.purpose)
    moving = select(*which).where(ssh_authorities.c.state.not_in([ACTIVE, RETIRED])).distinct()
    return [(row.tenant_id, row.purpose) for row in tx.execute(moving.order_by(*which))]


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
) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.USER, principal, key_id, now, USER_CERTIFICATE_S)
    builder = builder.add_extension(b"permit-pty", b"")
    if source_addresses:
        builder = builder.add_critical_option(b"source-address", ",".join(source_addresses).encode())
    return _sign(tx, vault, tenant_id, USER, builder, USER_CERTIFICATE_S)


def sign_host(tx: Connection, vault: Vault, tenant_id: str, *, key_line: str, node_id: str, now: int) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.HOST, node_id, node_id, now, HOST_CERTIFICATE_S)
    return _sign(tx, vault, tenant_id, HOST, builder, HOST_CERTIFICATE_S)


def _builder(line: str, kind: Any, principal: str, key_id: str, now: int, lives_s: int) -> ssh.SSHCertificateBuilder:
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
    private = serialization.load_ssh_private_key(
        vault.unseal(tx, tenant_id, row.sealed_private_key, bound_to(tenant_id, purpose, row.number)), None
    )
    if not isinstance(private, Ed25519PrivateKey):
        raise RuntimeError("an SSH authority key is not Ed25519")
    certificate = builder.sign(private)
    return Certificate(certificate.public_bytes().decode(), certificate.serial, lives_s, row.number)


def read_public_key(line: str) -> Any:
    parts = line.split()
    if len(parts) < 2 or parts[0] != "ssh-ed25519" or len(line) > 1000:
        raise SshKeyNotAccepted("Only Ed25519 keys are certified.")
    try:
        return serialization.load_ssh_public_key(" ".join(parts[:2]).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SshKeyNotAccepted("This line is not an OpenSSH public key.") from error


def _of(tenant_id: str, purpose: str) -> Any:
    return (ssh_authorities.c.tenant_id == tenant_id) & (ssh_authorities.c.purpose == purpose)


def bound_to(tenant_id: str, purpose: str, number: int) -> str:
    """The first authority keeps its original binding, from before there could be a second."""
    return f"ssh-authority/{tenant_id}/{purpose}" + (f"/{number}" if number > 1 else "")
