"""Which addresses the core contacts to read artifacts: `checked` for how one is written, `leads_astray` for where it
leads. Both are pure, and both are asked when a source is made and again before every connection.

One host has one spelling here. Whatever a person and a resolver could read differently (user names, trailing dots,
look-alike letters, numbers that are addresses) is refused, not repaired.
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
_HOP = re.compile(r"[\x21-\x7e]*")  # of the same host anyway: only what would break a request line is refused
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
    """The address of a source. `private`: a source of the platform that may be plain http, and on any own network."""
    if not url.isascii() or not _HOP.fullmatch(url) or "\\" in url:
        raise AddressRefused("An address has letters, digits and punctuation of ASCII only.")
    scheme, separator, rest = url.partition("://")
    authority, slash, tail = rest.partition("/")
    if not separator or scheme not in DEFAULT_PORTS or (scheme == "http" and not private):
        raise AddressRefused("An address begins with https://.")
    if "?" in rest or "#" in rest:
        raise AddressRefused("An address of a source has no query and no fragment.")
    host, said_port = _split(authority)
    path = checked_path(slash + tail)
    number = _port(said_port, port) if said_port is not None else DEFAULT_PORTS[scheme]
    return Address(scheme, _host(host, private), number, path.rstrip("/"))


def checked_path(path: str) -> str:
    """Inside a source: plain names between slashes, nothing that climbs or hides."""
    if not _PATH.fullmatch(path) or any(part in (".", "..") for part in path.split("/")):
        raise AddressRefused("A path has letters, digits and ._~+=@,:- between single slashes.")
    return path


def inside(base: Address, path: str) -> Address:
    """Something of a source: the source's own address, and a checked path below it, as it goes over the wire."""
    below = checked_path("/" + path.removeprefix("/"))
    return Address(base.scheme, base.host, base.port, quote(base.path + below, safe="/-_.~"))


def next_hop(here: Address, location: str) -> Address:
    """Where a redirect leads: the same scheme, host and port, or nowhere."""
    if not _HOP.fullmatch(location) or "\\" in location:
        raise AddressRefused("The source redirects to an address that cannot be read.")
    try:
        parts = urlsplit(urljoin(f"{here.scheme}://{here.authority}{here.target}", location))
    except ValueError:
        raise AddressRefused("The source redirects to an address that cannot be read.") from None
    if (parts.scheme, parts.netloc) != (here.scheme, here.authority):
        raise AddressRefused("The source redirects to another host, which is not followed.")
    return Address(here.scheme, here.host, here.port, parts.path, parts.query)


def leads_astray(ip: str, *, private: bool) -> str | None:
    """Why the core does not connect there, or nothing. Addresses inside addresses count as well."""
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return "is no address"
    for one in (address, *_embedded(address)):
        if one.is_unspecified or one.is_multicast or one.is_link_local:
            return "is no address of a server"  # link-local: where clouds keep their metadata
        if not private and (not one.is_global or getattr(one, "is_site_local", False)):
            return "is not a public one"
    return None


def _split(authority: str) -> tuple[str, str | None]:
    if "@" in authority:
        raise AddressRefused("An address has no user name in it: the credential of a source is given apart.")
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        if not bracket or rest[:1] not in ("", ":"):
            raise AddressRefused("The brackets around the IPv6 address are not right.")
        return f"[{host}]", rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _port(text: str, said: int | None) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or int(text) > 65535:
        raise AddressRefused("The port is not a number from 1 to 65535.")
    if int(text) not in DEFAULT_PORTS.values() and int(text) != said:
        raise AddressRefused(f"Port {text} is unusual: say `port` {text} as well if it is meant.")
    return int(text)


def _host(host: str, private: bool) -> str:
    """The host, in its one spelling."""
    if host.startswith("["):
        return _literal(host[1:-1], private)
    labels = host.split(".")
    if host.endswith("."):
        raise AddressRefused("A host name does not end with a dot.")
    if any(label.startswith("xn--") for label in labels):
        raise AddressRefused("Host names in other scripts (xn--) are refused: they can look like another name.")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise AddressRefused("A host name has lower-case letters, digits, dashes and single dots.")
    if _NUMERIC.fullmatch(labels[-1]):  # what resolvers read as a number, in any of its spellings
        return _literal(host, private)
    if len(labels) == 1 and not private:
        raise AddressRefused("A host name has at least one dot.")
    return host


def _literal(text: str, private: bool) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise AddressRefused(f"{text!r} is not an address in its usual spelling.") from None
    if str(address) != text or next(_embedded(address), None) is not None:
        raise AddressRefused(f"{text!r} is not an address in its usual spelling.")
    if why := leads_astray(text, private=private):
        raise AddressRefused(f"The address {text} {why}.")
    return text


def _embedded(address: IpAddress) -> Iterator[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv6Address):
        yield from filter(None, (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())))
        if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):  # ::a.b.c.d, long deprecated
            yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
