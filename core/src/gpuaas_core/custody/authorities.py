"""The two SSH authorities of a tenant: one signs people and controllers in, one says which host is which.

A user certificate has exactly one principal (the allocation), five minutes, no forwarding. A host certificate has
exactly one principal (the node id), so an address that moves to another machine is noticed.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import ssh
from sqlalchemy import Connection, select

from ..kit.db import insert_into
from ..kit.problems import Problem
from ..kit.sealed import declare_sealed
from .tables import ssh_authorities
from .vault import Vault

USER_CERTIFICATE_S = 300
HOST_CERTIFICATE_S = 30 * 24 * 3600
BACKDATE_S = 60


class SshKeyNotAccepted(Problem):
    status, code, title = 422, "ssh_key_not_accepted", "The SSH public key cannot be certified"
    way_out = "Send one line of an Ed25519 OpenSSH public key (`ssh-ed25519 AAAA…`)."


declare_sealed(
    ssh_authorities,
    "sealed_private_key",
    tenant="tenant_id",
    bound_to=lambda row: _bound_to(row.tenant_id, row.purpose),
)


@dataclass(frozen=True)
class Certificate:
    text: str
    serial: int
    lives_s: int


def ensure_authorities(tx: Connection, vault: Vault, tenant_id: str, now: int) -> None:
    """Made when the tenant invites its first machine."""
    if tx.execute(select(ssh_authorities.c.purpose).where(ssh_authorities.c.tenant_id == tenant_id)).first():
        return
    for purpose in ("user", "host"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        row = {"tenant_id": tenant_id, "purpose": purpose, "public_key": public.decode(), "created_at": now}
        sealed = vault.seal(tx, tenant_id, private, _bound_to(tenant_id, purpose))
        new = insert_into(tx, ssh_authorities).values(**row, sealed_private_key=sealed)
        tx.execute(new.on_conflict_do_nothing())  # of two first machines at once, one makes the keys


def public_key(tx: Connection, tenant_id: str, purpose: str) -> str:
    return _row(tx, tenant_id, purpose).public_key


def sign_user(
    tx: Connection, vault: Vault, tenant_id: str, *, key_line: str, principal: str, key_id: str, now: int
) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.USER, principal, key_id, now, USER_CERTIFICATE_S)
    builder = builder.add_extension(b"permit-pty", b"")
    return _sign(tx, vault, tenant_id, "user", builder, USER_CERTIFICATE_S)


def sign_host(tx: Connection, vault: Vault, tenant_id: str, *, key_line: str, node_id: str, now: int) -> Certificate:
    builder = _builder(key_line, ssh.SSHCertificateType.HOST, node_id, node_id, now, HOST_CERTIFICATE_S)
    return _sign(tx, vault, tenant_id, "host", builder, HOST_CERTIFICATE_S)


def _builder(line: str, kind: Any, principal: str, key_id: str, now: int, lives_s: int) -> ssh.SSHCertificateBuilder:
    if not principal:
        raise ValueError("a certificate without a principal would open every door")
    start = now // 1000 - BACKDATE_S
    return (
        ssh.SSHCertificateBuilder()
        .public_key(read_public_key(line))
        .serial(secrets.randbits(63))
        .type(kind)
        .key_id(key_id.encode())
        .valid_principals([principal.encode()])
        .valid_after(start)
        .valid_before(now // 1000 + lives_s)
    )


def _sign(
    tx: Connection, vault: Vault, tenant_id: str, purpose: str, builder: ssh.SSHCertificateBuilder, lives_s: int
) -> Certificate:
    row = _row(tx, tenant_id, purpose)
    private = serialization.load_ssh_private_key(
        vault.unseal(tx, tenant_id, row.sealed_private_key, _bound_to(tenant_id, purpose)), None
    )
    if not isinstance(private, Ed25519PrivateKey):
        raise RuntimeError("an SSH authority key is not Ed25519")
    certificate = builder.sign(private)
    return Certificate(certificate.public_bytes().decode(), certificate.serial, lives_s)


def read_public_key(line: str) -> Any:
    parts = line.split()
    if len(parts) < 2 or parts[0] != "ssh-ed25519" or len(line) > 1000:
        raise SshKeyNotAccepted("Only Ed25519 keys are certified.")
    try:
        return serialization.load_ssh_public_key(" ".join(parts[:2]).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SshKeyNotAccepted("This line is not an OpenSSH public key.") from error


def _row(tx: Connection, tenant_id: str, purpose: str) -> Any:
    mine = (ssh_authorities.c.tenant_id == tenant_id) & (ssh_authorities.c.purpose == purpose)
    return tx.execute(select(ssh_authorities).where(mine)).one()


def _bound_to(tenant_id: str, purpose: str) -> str:
    return f"ssh-authority/{tenant_id}/{purpose}"
