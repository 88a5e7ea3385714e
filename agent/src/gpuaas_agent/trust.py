"""Converts the platform's TrustView to the files that sshd reads. The module performs no input or output, so that every
case can be tested.

Nothing is copied without validation. A line that could carry an sshd option, a second line or a path is rejected. A
host certificate of another key is rejected too, because it would make this host unreachable.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuaas_agent import people
from gpuaas_agent.errors import TrustInvalid
from gpuaas_agent.places import Places
from gpuaas_agent.revoked import revocation_list

KEY_LINE = re.compile(
    r"(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/=]{40,2000}(?: [ -~]{0,200})?"
)
CERT_LINE = re.compile(r"ssh-ed25519-cert-v01@openssh\.com ([A-Za-z0-9+/=]{100,8000})(?: [ -~]{0,200})?")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")

DROP_IN = """\
# Written by gpuaas-agent: changes are overwritten. Who may log in is decided by the platform, per allocation.
HostKey {host_key}
HostCertificate {ssh}/host-cert.pub
TrustedUserCAKeys {ssh}/user_ca.pub
RevokedKeys {ssh}/revoked.krl
AuthorizedPrincipalsCommand /usr/bin/sh {ssh}/admit.sh %u %i %s
AuthorizedPrincipalsCommandUser root
AuthorizedPrincipalsFile none
AuthorizedKeysFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""


@dataclass(frozen=True)
class Trust:
    """The validated trust: the content of the files that sshd reads."""

    generation: int
    user_ca: bytes
    principals: dict[str, bytes]
    host_certificate: bytes
    revoked: tuple[int, ...] = ()
    people: bytes = b""

    @classmethod
    def of(cls, view: dict[str, Any], host_public_key: str) -> "Trust":
        try:
            users = {str(user): list(names) for user, names in view["principals"].items()}
            certificate, generation = str(view["host_certificate"]).strip(), int(view["generation"])
            authorities = [str(line).strip() for line in view["user_ca_public_keys"]]
            visitors = list(view.get("people", []))
            revoked = tuple(sorted({_serial(one) for one in view.get("revoked_serials", [])}))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrustInvalid(f"a field is missing or of the wrong kind ({error})") from error
        _check_certificate(certificate, host_public_key)
        return cls(
            generation,
            _authorities(authorities),
            _principals(users),
            f"{certificate}\n".encode(),
            revoked,
            _people(visitors, users),
        )

    def files(self, places: Places) -> dict[Path, bytes]:
        """Return the content of each file by path. sshd's drop-in is not included, because it is written last."""
        named = {places.ssh / "principals" / user: text for user, text in self.principals.items()}
        return (
            named
            | people.files(places, self.people)
            | {
                places.ssh / "user_ca.pub": self.user_ca,
                places.ssh / "host-cert.pub": self.host_certificate,
                places.ssh / "revoked.krl": revocation_list(self.revoked),
                places.ssh / "revoked_serials": "".join(f"{serial}\n" for serial in self.revoked).encode(),
                places.ssh / "admit.sh": admit_script(places),
            }
        )


def drop_in(places: Places, ssh: Path | None = None) -> bytes:
    return DROP_IN.format(host_key=places.host_key, ssh=ssh or places.ssh).encode()


def admit_script(places: Places) -> bytes:
    text = Path(__file__).with_name("admit.sh").read_text()
    for word, path in (("@EPOCHS@", places.epochs), ("@SESSIONS@", places.sessions), ("@SSH@", places.ssh)):
        text = text.replace(word, str(path))
    return text.encode()


def _serial(serial: Any) -> int:
    number = int(serial) if isinstance(serial, str) and serial.isascii() and serial.isdigit() else 0
    if not 0 < number < 2**64:
        raise ValueError("a serial is not a number")
    return number


def _authorities(lines: list[str]) -> bytes:
    for line in lines:
        if not KEY_LINE.fullmatch(line):
            raise TrustInvalid("a user authority is not a plain public key")
    return "".join(f"{line}\n" for line in lines).encode()


def _principals(users: dict[str, list[Any]]) -> dict[str, bytes]:
    for user in users:
        if not USER.fullmatch(user):
            raise TrustInvalid("a login name has characters it must not have")
    return {user: _lines(names) for user, names in users.items()}


def _people(visitors: list[Any], users: dict[str, list[Any]]) -> bytes:
    """Render the principals of people, one per line. Raises TrustInvalid if a principal is also in `users`, because it
    would give a person a controller's access."""
    lines = _lines(visitors)
    if {*visitors} & {name for names in users.values() for name in names}:
        raise TrustInvalid("a person's principal is a controller's, too")
    return lines


def _lines(names: list[Any]) -> bytes:
    if not all(isinstance(name, str) and PRINCIPAL.fullmatch(name) for name in names):
        raise TrustInvalid("a principal has characters it must not have")
    return "".join(f"{name}\n" for name in names).encode()


def _check_certificate(line: str, host_public_key: str) -> None:
    match = CERT_LINE.fullmatch(line)
    if not match:
        raise TrustInvalid("the host certificate is not an ssh-ed25519 certificate")
    try:
        blob = base64.b64decode(match.group(1), validate=True)
        own = base64.b64decode(host_public_key.split()[1], validate=True)
        (_, _, certified), (_, key) = _strings(blob, 3), _strings(own, 2)
    except (binascii.Error, IndexError, ValueError) as error:
        raise TrustInvalid("the host certificate cannot be read") from error
    if certified != key:
        raise TrustInvalid("the host certificate belongs to another host key")


def _strings(blob: bytes, count: int) -> list[bytes]:
    """Return the first `count` length-prefixed strings of an SSH key or certificate: type, (nonce,) key. Raises
    ValueError if the data ends early."""
    strings, rest = [], blob
    for _ in range(count):
        size = int.from_bytes(rest[:4], "big")
        if len(rest) < 4 + size:
            raise ValueError("cut short")
        strings.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return strings
