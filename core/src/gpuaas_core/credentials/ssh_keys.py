"""SSH key pairs of a project: generated here or imported. Weak and passphrase-protected keys are rejected.

A key is serialized again from its numbers, so comments and anything else in an imported file are dropped.
"""

import base64
import hashlib
from dataclasses import dataclass, field

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from cryptography.hazmat.primitives.serialization.ssh import SSHPrivateKeyTypes

from ..kit.problems import Problem

BEGINS = "-----BEGIN OPENSSH PRIVATE KEY-----"
SMALLEST_RSA, LARGEST_RSA = 3072, 8192


class CredentialKeyNotAccepted(Problem):
    status, code, title = 422, "credential_key_not_accepted", "Private key not accepted"
    way_out = (
        "Send an OpenSSH private key without a passphrase (`ssh-keygen -p -N '' -f COPY` removes it from a copy): "
        f"Ed25519, ECDSA, or RSA of {SMALLEST_RSA} to {LARGEST_RSA} bits. Or let the platform generate a key."
    )


@dataclass(frozen=True)
class SshKey:
    algorithm: str
    public_key: str
    fingerprint: str  # as `ssh-keygen -l` shows it
    origin: str  # generated, imported
    private_key: bytes = field(repr=False)


def generated() -> SshKey:
    return _described(Ed25519PrivateKey.generate(), "ed25519", "generated")


def imported(text: str) -> SshKey:
    if not text.lstrip().startswith(BEGINS):
        raise CredentialKeyNotAccepted("The private key is not in OpenSSH format.")
    try:
        key = load_ssh_private_key(text.strip().encode() + b"\n", password=None)
    except TypeError:
        raise CredentialKeyNotAccepted("The private key is protected with a passphrase.") from None
    except (ValueError, UnsupportedAlgorithm):  # their messages may contain parts of the key
        raise CredentialKeyNotAccepted("The private key is unreadable or of an unsupported type.") from None
    return _described(key, _algorithm(key), "imported")


def _algorithm(key: SSHPrivateKeyTypes) -> str:
    if isinstance(key, RSAPrivateKey):
        if not SMALLEST_RSA <= key.key_size <= LARGEST_RSA:
            raise CredentialKeyNotAccepted(f"The RSA key has {key.key_size} bits.")
        return "rsa"
    names = {Ed25519PrivateKey: "ed25519", EllipticCurvePrivateKey: "ecdsa"}
    for kind, name in names.items():
        if isinstance(key, kind):
            return name
    raise CredentialKeyNotAccepted("The key type is not supported.")


def _described(key: SSHPrivateKeyTypes, algorithm: str, origin: str) -> SshKey:
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    digest = hashlib.sha256(base64.b64decode(public.split()[1])).digest()
    return SshKey(
        algorithm=algorithm,
        public_key=public,
        fingerprint="SHA256:" + base64.b64encode(digest).decode().rstrip("="),
        origin=origin,
        private_key=key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
    )
