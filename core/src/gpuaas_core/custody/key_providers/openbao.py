"""Holds the master key in an OpenBao or Vault server (transit engine). The key never leaves the server.

The core signs in with an AppRole or a token from a file. While the server is unreachable every request that needs a key
fails fast with an explanation; cached data keys are used until they expire.
"""

import base64
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeAlias, TypedDict, TypeVar

from .port import CustodyFailed, CustodyUnavailable

T = TypeVar("T")
TIMEOUT_S = 3
REST_S = 1.0  # after a failure, further requests fail immediately for this long


class AppRole(Protocol):
    def login(self, *, role_id: str, secret_id: str) -> object: ...


class AuthMethods(Protocol):
    @property
    def approle(self) -> AppRole: ...


class Client(Protocol):
    """The part of hvac's client that is used for signing in. It is declared here because hvac has no types."""

    token: str | None

    @property
    def auth(self) -> AuthMethods: ...


class KeyFacts(TypedDict):
    latest_version: int
    min_decryption_version: int


SignIn: TypeAlias = Callable[[Client], None]


class OpenBao:
    kind = "openbao"

    def __init__(self, address: str, *, key: str, mount: str, sign_in: SignIn) -> None:
        import hvac

        self._client: Any = hvac.Client(url=address, timeout=TIMEOUT_S)
        self._address, self._key, self._mount, self._sign_in = address, key, mount, sign_in
        self._lock = threading.Lock()
        self._away_until = 0.0

    @classmethod
    def configured(cls, environment: Mapping[str, str], _data_dir: Path) -> "OpenBao":
        def named(name: str, default: str = "") -> str:
            return environment.get(f"GPUAAS_CORE_OPENBAO_{name}", default)

        token_file, role, secret_file = named("TOKEN_FILE"), named("ROLE_ID"), named("SECRET_ID_FILE")
        if not named("ADDRESS") or not (token_file or (role and secret_file)):
            raise RuntimeError(
                "custody in OpenBao needs GPUAAS_CORE_OPENBAO_ADDRESS, "
                "and either _TOKEN_FILE or _ROLE_ID with _SECRET_ID_FILE"
            )

        def sign_in(client: Client) -> None:
            if token_file:
                client.token = Path(token_file).read_text().strip()
            else:
                client.auth.approle.login(role_id=role, secret_id=Path(secret_file).read_text().strip())

        return cls(named("ADDRESS"), key=named("KEY", "gpuaas"), mount=named("MOUNT", "transit"), sign_in=sign_in)

    def current(self) -> str:
        return self._ask(lambda: str(self._about()["latest_version"]))

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        answer = self._ask(
            lambda: self._client.secrets.transit.encrypt_data(
                name=self._key,
                mount_point=self._mount,
                plaintext=base64.b64encode(key).decode(),
                associated_data=base64.b64encode(bound_to.encode()).decode(),
            )
        )
        text: str = answer["data"]["ciphertext"]
        return text.split(":")[1].lstrip("v"), text.encode()

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes:
        answer = self._ask(
            lambda: self._client.secrets.transit.decrypt_data(
                name=self._key,
                mount_point=self._mount,
                ciphertext=wrapped.decode(),
                associated_data=base64.b64encode(bound_to.encode()).decode(),
            )
        )
        return base64.b64decode(answer["data"]["plaintext"])

    def rotate(self) -> str:
        transit = self._client.secrets.transit
        self._ask(lambda: transit.rotate_key(name=self._key, mount_point=self._mount))
        return self.current()

    def retire(self, used: set[str]) -> list[str]:
        """Raise the minimum version for decryption: the server keeps old versions but no longer decrypts with them."""
        about = self._ask(self._about)
        before, lowest = int(about["min_decryption_version"]), min(map(int, used | {str(about["latest_version"])}))
        if lowest <= before:
            return []
        transit = self._client.secrets.transit
        limits = {"min_decryption_version": lowest}
        self._ask(lambda: transit.update_key_configuration(name=self._key, mount_point=self._mount, **limits))
        return [str(version) for version in range(before, lowest)]

    def _about(self) -> KeyFacts:
        return self._client.secrets.transit.read_key(name=self._key, mount_point=self._mount)["data"]

    def _ask(self, fn: Callable[[], T]) -> T:
        if time.monotonic() < self._away_until:
            raise CustodyUnavailable(f"{self._address} did not respond a moment ago.")
        try:
            return self._signed_in(fn)
        except (CustodyFailed, CustodyUnavailable):
            raise
        except Exception as error:  # down, sealed, forbidden, invalid response: the client raises many types
            self._refused(error)

    def _signed_in(self, fn: Callable[[], T]) -> T:
        import hvac.exceptions as exceptions

        with self._lock:
            if not self._client.token:
                self._sign_in(self._client)
        try:
            return fn()
        except exceptions.Forbidden:  # the token expired or the policy forbids it: signing in again shows which
            with self._lock:
                self._sign_in(self._client)
            return fn()

    def _refused(self, error: Exception) -> NoReturn:
        import hvac.exceptions as exceptions

        if isinstance(error, exceptions.InvalidRequest):
            raise CustodyFailed("The custody server cannot unwrap this data key.") from error
        self._away_until = time.monotonic() + REST_S
        reason = (
            "rejected the credentials" if isinstance(error, exceptions.Forbidden) else "does not respond or is sealed"
        )
        raise CustodyUnavailable(f"The custody server at {self._address} {reason}.") from error
