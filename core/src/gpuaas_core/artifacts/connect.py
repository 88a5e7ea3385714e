"""One GET at a source, for reading its answer piece by piece. Blocking; called in a thread by `reading`.

The host is resolved once, every address it has is looked at, and the connection goes to exactly such an address: a name
that answers differently a moment later (DNS rebinding) changes nothing. No proxy, no cookie, no redirect elsewhere.
"""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator

from .addresses import Address, leads_astray, next_hop
from .errors import AddressRefused, SourceAway, SourceRefused

Headers = Callable[[Address], dict[str, str]]
SILENCE_S = 20.0
HOPS = 3
REDIRECTS = (301, 302, 303, 307, 308)
PIECE = 1024 * 1024


class Answer:
    def __init__(self, response: http.client.HTTPResponse, name: str, deadline: float) -> None:
        self._response, self._name, self._deadline = response, name, deadline
        self.length = response.length  # None: it does not say
        self.framed = response.length is not None or bool(response.chunked)  # so that its end can be told from a cut

    def pieces(self) -> Iterator[bytes]:
        while True:
            if time.monotonic() > self._deadline:
                raise SourceAway(f"{self._name} is too slow.")
            try:
                piece = self._response.read(PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise SourceAway(f"{self._name} went away in the middle of its answer.", retry_after_s=2) from error
            if not piece:
                return
            yield piece


@contextlib.contextmanager
def getting(address: Address, headers: Headers, *, private: bool, patience_s: float) -> Iterator[Answer]:
    """The answer with status 200; any other is told as whose fault it is."""
    deadline = time.monotonic() + patience_s
    here = address
    for _ in range(HOPS):
        connection = _Pinned(here, resolved(here, private=private))
        with contextlib.closing(connection):
            response = _asked(connection, here, headers(here))
            if response.status in REDIRECTS:
                here = next_hop(here, response.getheader("Location") or "")
                continue
            _check(response.status, here.host)
            yield Answer(response, here.host, deadline)
            return
    raise SourceRefused(f"{address.host} redirects in circles.")


def resolved(address: Address, *, private: bool) -> list[str]:
    """Every address of the host, all of them fit to connect to. One that is not spoils the whole name."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SourceAway(f"The name {address.host} cannot be resolved.", retry_after_s=5) from error
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    for ip in addresses:
        if why := leads_astray(ip, private=private):
            raise AddressRefused(f"The name {address.host} leads to an address that {why}.")
    return addresses


class _Pinned(http.client.HTTPConnection):
    """Connects to addresses that were looked at, and proves the host by its name where it speaks TLS."""

    def __init__(self, address: Address, ips: list[str]) -> None:
        super().__init__(address.host, address.port, timeout=SILENCE_S)
        self._address, self._ips = address, ips

    def connect(self) -> None:
        self.sock = self._reached()
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._address.host)

    def _reached(self) -> socket.socket:
        *others, last = self._ips
        for ip in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((ip, self._address.port), timeout=5)
        return socket.create_connection((last, self._address.port), timeout=5)


def _asked(connection: _Pinned, address: Address, headers: dict[str, str]) -> http.client.HTTPResponse:
    try:
        connection.request("GET", address.target, headers={"Host": address.authority, "Accept": "*/*"} | headers)
        assert connection.sock is not None
        connection.sock.settimeout(SILENCE_S)
        return connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        raise SourceRefused(f"The certificate of {address.host} is not accepted: {error.verify_message}.") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceAway(f"{address.host} does not answer.", retry_after_s=2) from error


def _check(status: int, host: str) -> None:
    if status == 200:
        return
    if status >= 500 or status in (408, 425, 429):
        raise SourceAway(f"{host} answered with {status}.", retry_after_s=5)
    told = {401: "wants another credential", 403: "wants another credential", 404: "has nothing under this reference"}
    raise SourceRefused(f"{host} {told.get(status, 'does not give it out')} ({status}).")
