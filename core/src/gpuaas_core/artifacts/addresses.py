"""Checks of the addresses that the core contacts to read artifacts: `checked` validates the URL of a source,
`leads_astray` an IP address of its host. Both are pure functions, and both run when a source is created and again
before every connection.

Each host has exactly one accepted spelling. Spellings that a person and a resolver could read differently (user names,
trailing dots, look-alike letters, numeric host names) are rejected, not normalized.
"""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from .errors import AddressRefused

DEFAULT_PORTS = {"https": 443, "http": 80}
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PATH = re.compile(r"(/[A-Za-z0-9._~+=@,:-]+)*/?")
_HOP = re.compile(r"[\x21-\x7e]*")  # same host only, so reject just what would break a request line
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Address:
    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def authority(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == DEFAULT_PORTS[self.scheme] else f"{name}:{self.port}"

    @property
    def target(self) -> str:
        return (self.path or "/") + (f"?{self.query}" if self.query else "")

    @property
    def same_place(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def checked(url: str, *, private: bool = False, port: int | None = None) -> Address:
    """Parse and validate the URL of a source, or raise AddressRefused. `private` allows plain http and private
    networks; `port` is the only port besides 80 and 443 that the URL may contain."""
    if not url.isascii() or not _HOP.fullmatch(url) or "\\" in url:
        raise AddressRefused("The address may only contain printable ASCII characters.")
    scheme, separator, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    if not separator or scheme not in DEFAULT_PORTS or (scheme == "http" and not private):
        raise AddressRefused("The address must start with https://.")
    if "?" in rest or "#" in rest:
        raise AddressRefused("The address of a source must not have a query or a fragment.")
    host, said_port = _split(authority)
    path = checked_path(slash + tail)
    number = _port(said_port, port) if said_port is not None else DEFAULT_PORTS[scheme]
    return Address(scheme, _host(host, private), number, path.rstrip("/"))


def checked_path(path: str) -> str:
    """Return the path, or raise AddressRefused unless it has only plain names between slashes, no `.` or `..`."""
    if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        raise AddressRefused("A path may only contain letters, digits and ._~+=@,:- between single slashes.")
    return path


def inside(base: Address, path: str) -> Address:
    """Return the percent-encoded address of an object. `path` is relative to the source's address and is checked."""
    below = checked_path("/" + path.removeprefix("/"))
    return Address(base.scheme, base.host, base.port, quote(base.path + below, safe="/-_.~"))


def next_hop(here: Address, location: str) -> Address:
    """Return the address that a redirect points to, or raise AddressRefused if scheme, host or port differ."""
    if not _HOP.fullmatch(location) or "\\" in location:
        raise AddressRefused("The source redirects to an address that cannot be parsed.")
    try:
        parts = urlsplit(urljoin(f"{here.scheme}://{here.authority}{here.target}", location))
    except ValueError:
        raise AddressRefused("The source redirects to an address that cannot be parsed.") from None
    if (parts.scheme, parts.netloc) != (here.scheme, here.authority):
        raise AddressRefused("The source redirects to another host; such redirects are not followed.")
    return Address(here.scheme, here.host, here.port, parts.path, parts.query)


def leads_astray(ip: str, *, private: bool) -> str | None:
    """Return the reason why the core must not connect to this IP address, or None if it may. An IPv4 address embedded
    in an IPv6 address is checked as well."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return "is not an IP address"
    for candidate in (address, *_embedded(address)):
        if candidate.is_unspecified or candidate.is_multicast or candidate.is_link_local:
            return "is not a server address"  # link-local: where clouds serve their metadata
        if not private and (not candidate.is_global or getattr(candidate, "is_site_local", False)):
            return "is not public"
    return None


def _split(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise AddressRefused("The address must not contain a user name. Set the source's credential separately.")
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise AddressRefused("The brackets around the IPv6 address are malformed.")
        return f"[{host}]", rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _port(text: str, declared: int | None) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > 65535:
        raise AddressRefused("The port must be a number from 1 to 65535.")
    if int(text) not in DEFAULT_PORTS.values() and int(text) != declared:
        raise AddressRefused(f"Port {text} is not a default port. To use it, also send `port`: {text}.")
    return int(text)


def _host(host: str, private: bool) -> str:
    """Return the host if it has its canonical spelling, otherwise raise AddressRefused."""
    if host.startswith("["):
        return _literal(host[1:-1], private)
    labels = host.split(".")
    if host.endswith("."):
        raise AddressRefused("The host name must not end with a dot.")
    if any(label.startswith("xn--") for label in labels):
        raise AddressRefused("Internationalized host names (xn--) are rejected: they can imitate another name.")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("The host name may only contain lower-case letters, digits, dashes and single dots.")
    if _NUMERIC.fullmatch(labels[-1]):  # resolvers read this as an IP address
        return _literal(host, private)
    if len(labels) == 1 and not private:
        raise AddressRefused("The host name must contain a dot.")
    return host


def _literal(text: str, private: bool) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AddressRefused(f"{text!r} is not an IP address in canonical form.") from None
    if str(address) != text or next(_embedded(address), None) is not None:
        raise AddressRefused(f"{text!r} is not an IP address in canonical form.")
    if why := leads_astray(text, private=private):
        raise AddressRefused(f"The address {text} {why}.")
    return text


def _embedded(address: IpAddress) -> Iterator[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):  # ::a.b.c.d, long deprecated
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
