"""Sends one GET request to a source and reads the response in chunks. The calls block; `fetch` makes them in a thread.

The host is resolved once, every address is checked, and the connection uses one of the checked addresses, so a name
that resolves differently a moment later (DNS rebinding) has no effect. Proxies and cookies are not used, and redirects
to other hosts are not followed.
"""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Generator, Iterator

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
        self.length = response.length  # None: not announced
        self.framed = response.length is not None or bool(
            response.chunked
        )  # without framing an interrupted response looks complete

    def pieces(self) -> Iterator[bytes]:
        while True:
            if time.monotonic() > self._deadline:
                raise SourceAway(f"{self._name} did not send the content in time.")
            try:
                piece = self._response.read(PIECE)
            except (OSError, http.client.HTTPException) as error:
                raise SourceAway(
                    f"{self._name} closed the connection before the end of the response.", retry_after_s=2
                ) from error
            if not piece:
                return
            yield piece


@contextlib.contextmanager
def getting(address: Address, headers: Headers, *, private: bool, patience_s: float) -> Generator[Answer, None, None]:
    """Send a GET request, follow redirects, and yield the response if its status is 200. Any other status raises
    SourceAway if it is temporary (5xx, 408, 425, 429), otherwise SourceRefused."""
    deadline = time.monotonic() + patience_s
    here = address
    for _ in range(HOPS):
        connection = _Pinned(here, resolved(here, private=private))
        with contextlib.closing(connection):
            response = _request(connection, here, headers(here))
            if response.status in REDIRECTS:
                here = next_hop(here, response.getheader("Location") or "")
                continue
            _check(response.status, here.host)
            yield Answer(response, here.host, deadline)
            return
    raise SourceRefused(f"{address.host} redirects too many times.")


def resolved(address: Address, *, private: bool) -> list[str]:
    """Return the IP addresses of the host. Raises AddressRefused if the core must not connect to one of them."""
    try:
        records = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SourceAway(f"Cannot resolve the host name {address.host}.", retry_after_s=5) from error
    addresses = list(dict.fromkeys(str(record[4][0]) for record in records))
    for ip in addresses:
        if why := leads_astray(ip, private=private):
            raise AddressRefused(f"The host name {address.host} resolves to an address that {why}.")
    return addresses


class _Pinned(http.client.HTTPConnection):
    """An HTTP connection to one of the given IP addresses. TLS verifies the certificate against the host name."""

    def __init__(self, address: Address, ips: list[str]) -> None:
        super().__init__(address.host, address.port, timeout=SILENCE_S)
        self._address, self._ips = address, ips

    def connect(self) -> None:
        self.sock = self._connect_checked()
        if self._address.scheme == "https":
            context = ssl.create_default_context()
            self.sock = context.wrap_socket(self.sock, server_hostname=self._address.host)

    def _connect_checked(self) -> socket.socket:
        *others, last = self._ips
        for ip in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((ip, self._address.port), timeout=5)
        return socket.create_connection((last, self._address.port), timeout=5)


def _request(connection: _Pinned, address: Address, headers: dict[str, str]) -> http.client.HTTPResponse:
    try:
        connection.request("GET", address.target, headers={"Host": address.authority, "Accept": "*/*"} | headers)
        assert connection.sock is not None
        connection.sock.settimeout(SILENCE_S)
        return connection.getresponse()
    except ssl.SSLCertVerificationError as error:
        raise SourceRefused(f"The certificate of {address.host} was rejected: {error.verify_message}.") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceAway(f"{address.host} does not respond.", retry_after_s=2) from error


def _check(status: int, host: str) -> None:
    if status == 200:
        return
    if status >= 500 or status in (408, 425, 429):
        raise SourceAway(f"{host} answered with {status}.", retry_after_s=5)
    reasons = {401: "rejected the credential", 403: "rejected the credential", 404: "has no content at this reference"}
    raise SourceRefused(f"{host} {reasons.get(status, 'did not return the content')} ({status}).")
