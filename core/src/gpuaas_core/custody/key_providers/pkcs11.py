"""Holds the master key in an HSM (PKCS#11): generated there, not extractable, one object per version.

The standard does not allow threads to share a session, so one lock serializes the calls; the vault caches data keys.
"""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeVar

from .port import CustodyFailed, CustodyUnavailable

T = TypeVar("T")


class HsmKey(Protocol):
    """A key inside the HSM. This protocol declares the methods in use, because the library has no types."""

    @property
    def label(self) -> str: ...
    def destroy(self) -> None: ...
    def encrypt(self, data: bytes, *, mechanism: object, mechanism_param: object) -> bytes: ...
    def decrypt(self, data: bytes, *, mechanism: object, mechanism_param: object) -> bytes: ...


class Session(Protocol):
    def get_objects(self, attributes: Mapping[object, object]) -> Iterable[HsmKey]: ...
    def generate_key(
        self, kind: object, bits: int, *, label: str, store: bool, template: Mapping[object, object]
    ) -> object: ...


class Pkcs11:
    kind = "pkcs11"

    def __init__(self, module: str, *, token: str, pin: str, label: str) -> None:
        import pkcs11

        self._module, self._token, self._pin, self._label = module, token, pin, label
        self._library: Any = pkcs11.lib(module)
        self._session: Session | None = None
        self._lock = threading.RLock()
        if not self._ask(self._versions):
            self.rotate()

    @classmethod
    def configured(cls, environment: Mapping[str, str], _data_dir: Path) -> "Pkcs11":
        def named(name: str, default: str = "") -> str:
            return environment.get(f"GPUAAS_CORE_PKCS11_{name}", default)

        if not (named("MODULE") and named("TOKEN") and named("PIN_FILE")):
            raise RuntimeError("custody in an HSM needs GPUAAS_CORE_PKCS11_MODULE, _TOKEN and _PIN_FILE")
        pin = Path(named("PIN_FILE")).read_text().strip()
        return cls(named("MODULE"), token=named("TOKEN"), pin=pin, label=named("LABEL", "gpuaas"))

    def current(self) -> str:
        return str(max(self._ask(self._versions)))

    def wrap(self, key: bytes, bound_to: str) -> tuple[str, bytes]:
        def here(session: Session) -> tuple[str, bytes]:
            version, nonce = max(self._versions(session)), os.urandom(12)
            master = self._master(session, version)
            return str(version), nonce + master.encrypt(key, **_gcm(nonce, bound_to))

        return self._ask(here)

    def unwrap(self, version: str, wrapped: bytes, bound_to: str) -> bytes:
        def here(session: Session) -> bytes:
            return self._master(session, int(version)).decrypt(wrapped[12:], **_gcm(wrapped[:12], bound_to))

        return self._ask(here)

    def rotate(self) -> str:
        import pkcs11

        def here(session: Session) -> str:
            version = max(self._versions(session), default=0) + 1
            never: dict[object, object] = {pkcs11.Attribute.SENSITIVE: True, pkcs11.Attribute.EXTRACTABLE: False}
            session.generate_key(pkcs11.KeyType.AES, 256, label=self._name(version), store=True, template=never)
            return str(version)

        return self._ask(here)

    def retire(self, used: set[str]) -> list[str]:
        def here(session: Session) -> list[str]:
            known = self._versions(session)
            retired = [v for v in sorted(known) if str(v) not in used and v != max(known)]
            for version in retired:
                known[version].destroy()
            return [str(version) for version in retired]

        return self._ask(here)

    def _master(self, session: Session, version: int) -> HsmKey:
        known = self._versions(session)
        if version not in known:
            raise CustodyFailed(f"Version {version} of the master key is not in the HSM.")
        return known[version]

    def _versions(self, session: Session) -> dict[int, HsmKey]:
        import pkcs11

        versions: dict[int, HsmKey] = {}
        wanted: dict[object, object] = {pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY}
        for key in session.get_objects(wanted):
            name, _, version = str(key.label).rpartition("/")
            if name == self._label and version.isdigit():
                versions[int(version)] = key
        return versions

    def _name(self, version: int) -> str:
        return f"{self._label}/{version}"

    def _open_session(self) -> Session:
        import pkcs11.exceptions as exceptions

        token = self._library.get_token(token_label=self._token)
        try:
            return token.open(user_pin=self._pin, rw=True)
        except exceptions.UserAlreadyLoggedIn:  # a login is valid for the whole process
            return token.open(rw=True)

    def _ask(self, fn: Callable[[Session], T]) -> T:
        import pkcs11.exceptions as exceptions

        wrong = (
            exceptions.EncryptedDataInvalid,
            exceptions.EncryptedDataLenRange,
            exceptions.DataInvalid,
            exceptions.FunctionFailed,
        )
        with self._lock:
            try:
                if self._session is None:
                    self._session = self._open_session()
                return fn(self._session)
            except (*wrong, exceptions.GeneralError) as error:
                raise CustodyFailed("The HSM cannot unwrap this data key.") from error
            except exceptions.PKCS11Error as error:
                self._session = None
                raise CustodyUnavailable(f"The HSM does not respond: {type(error).__name__}.") from error


class GcmCall(TypedDict):
    mechanism: object
    mechanism_param: object


def _gcm(nonce: bytes, bound_to: str) -> GcmCall:
    import pkcs11

    # PKCS#11 counts the tag in bits
    parameters = pkcs11.GCMParams(nonce=nonce, aad=bound_to.encode(), tag_bits=128)
    return {"mechanism": pkcs11.Mechanism.AES_GCM, "mechanism_param": parameters}
