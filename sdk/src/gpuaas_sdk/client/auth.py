"""Authentication of the client: a fixed bearer token (a person, a script), or a service account that gets short-lived
tokens.

A transport calls `due()`, sends `renewal()` and passes the answer to `accept()`. This module does not use the network,
so the sync and the async client share it. A service account's private key never leaves the process: only a signed
assertion is sent, which is valid for a minute and works once. `cryptography` is imported only when an assertion is
signed.
"""

from __future__ import annotations

import base64
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from .backoff import now
from .models import TokenView
from .request import Request

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ASSERTION_LIFE_S = 55  # the platform accepts at most 60
RENEW_BEFORE_S = 60.0


class Auth(Protocol):
    def header(self) -> str | None: ...
    def due(self) -> bool: ...
    def renewal(self) -> Request[TokenView] | None: ...
    def accept(self, answer: TokenView, asked_at: float) -> None: ...
    def forget(self, refused: str | None) -> bool:
        """Drop the rejected token, unless another call has already renewed it. Returns True if a new token can be
        requested, otherwise False."""
        ...


class Bearer:
    """A fixed bearer token. It cannot be renewed: a 401 is raised to the caller."""

    def __init__(self, token: str | None = None) -> None:
        self._token = token

    def header(self) -> str | None:
        return f"Bearer {self._token}" if self._token else None

    def due(self) -> bool:
        return False

    def renewal(self) -> None:
        return None

    def accept(self, answer: TokenView, asked_at: float) -> None:
        self._token = answer.access_token

    def forget(self, refused: str | None) -> bool:
        return False


class ServiceAccount(msgspec.Struct, kw_only=True, frozen=True):
    """The identity file of a controller: {"id", "private_jwk", "project_id", "api"}; keep it at mode 0600."""

    private_jwk: dict[str, str]
    project_id: str
    api: str
    id: str = ""
    issuer: str = "gpuaas"
    source_addresses: list[str] = []  # machines accept its certificates only from these, as they see it; any if empty
    key_id: str = ""  # sent as `kid` if known; without it the platform tries every active key of the account

    @classmethod
    def load(cls, path: str | Path) -> ServiceAccount:
        return msgspec.json.decode(Path(path).read_bytes(), type=cls)

    @classmethod
    def generate(cls, *, project_id: str, api: str, issuer: str = "gpuaas") -> ServiceAccount:
        """Create an unregistered service account with a new Ed25519 key. Register `public_jwk`, then save
        `registered(id)`."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.generate()
        x, d = _b64(key.public_key().public_bytes_raw()), _b64(key.private_bytes_raw())
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": x, "d": d}
        return cls(private_jwk=jwk, project_id=project_id, api=api, issuer=issuer)

    @property
    def public_jwk(self) -> dict[str, str]:
        return {name: value for name, value in self.private_jwk.items() if name != "d"}

    def registered(self, service_account_id: str) -> ServiceAccount:
        return msgspec.structs.replace(self, id=service_account_id)

    def save(self, path: str | Path) -> None:
        """Write the identity file atomically, readable only by its owner."""
        whole = Path(path).with_name(f".{Path(path).name}.new")
        descriptor = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
        os.replace(whole, path)

    def assertion(self) -> str:
        """Return a signed assertion of the account's identity, for POST /v1/token."""
        if self.private_jwk.get("crv") != "Ed25519":
            raise ValueError("the SDK signs with Ed25519 keys only; make one with ServiceAccount.generate()")
        issued = int(time.time())
        claims = {"iss": self.id, "sub": self.id, "aud": self.issuer, "iat": issued, "exp": issued + ASSERTION_LIFE_S}
        header = {"alg": "Ed25519", "typ": "JWT"} | ({"kid": self.key_id} if self.key_id else {})
        signed = f"{_json(header)}.{_json({**claims, 'jti': secrets.token_hex(16)})}"
        return f"{signed}.{_b64(self._sign(signed.encode()))}"

    def _sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        secret = base64.urlsafe_b64decode(self.private_jwk["d"] + "==")
        return Ed25519PrivateKey.from_private_bytes(secret).sign(data)


class ServiceAccountAuth:
    """Renews the short-lived token of a service account: a minute before it expires, or when the platform rejects
    it."""

    def __init__(self, account: ServiceAccount) -> None:
        self._account = account
        self._token: str | None = None
        self._due_at = 0.0

    def header(self) -> str | None:
        return f"Bearer {self._token}" if self._token else None

    def due(self) -> bool:
        return self._token is None or now() >= self._due_at

    def renewal(self) -> Request[TokenView]:
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": ASSERTION_TYPE,
            "client_assertion": self._account.assertion(),
        }
        # Never resent as it is: the assertion is single use, so a retry has to sign a new one.
        return Request("POST", "/v1/token", TokenView, form=form, anonymous=True, retries=False)

    def accept(self, answer: TokenView, asked_at: float) -> None:
        self._token = answer.access_token
        self._due_at = asked_at + max(answer.expires_in - RENEW_BEFORE_S, answer.expires_in / 2)

    def forget(self, refused: str | None) -> bool:
        if refused == self.header():
            self._token = None
        return True


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _json(value: Mapping[str, object]) -> str:
    return _b64(msgspec.json.encode(value))
