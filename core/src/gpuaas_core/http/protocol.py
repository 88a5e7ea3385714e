"""The HTTP protocol of the server: head and body of a response leave in one segment.

The server writes the head of a response and its body one after the other, and the event loop sends each at once: two
system calls and two segments for every response. What is written in one turn of the event loop is sent together here.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class JoinedWrites(asyncio.Transport):
    """A transport that sends what was written in one turn of the event loop at the end of that turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._held = transport, loop, list[bytes]()
        self.get_extra_info = transport.get_extra_info
        self.is_closing = transport.is_closing
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.set_protocol = transport.set_protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(bytes(data))

    def _send(self) -> None:
        held, self._held = self._held, []
        if held and not self._transport.is_closing():
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        self._send()
        self._transport.close()

    def abort(self) -> None:
        self._held = []
        self._transport.abort()


class Protocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # of a TCP connection
        super().connection_made(JoinedWrites(transport, self.loop))
