"""Middleware that rejects request bodies above 1 MiB, by their Content-Length and by counting the bytes that arrive.

Routes that receive content (artifacts) declare a larger limit. Only the middleware for correlation ids runs before this
one, so that a flood of large requests costs no database access.
"""

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..kit.problems import BodyTooLarge
from .problems import answer
from .request_log import header_of

MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Wider:
    method: str
    path: re.Pattern[str]
    most: Callable[[], int]


class Bounded:
    def __init__(self, app: ASGIApp, wider: Sequence[Wider] = ()) -> None:
        self.app, self.wider = app, wider

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = header_of(scope, b"content-length")
        if announced is None and header_of(scope, b"transfer-encoding") is None:
            await self.app(scope, receive, send)  # without both headers a request has no body (RFC 9112, 6.3)
            return
        most, announced = self._most(scope["method"], scope["path"]), announced or "0"
        if announced.isascii() and announced.isdigit() and int(announced[:20]) > most:
            await _refuse(most, scope, receive, send)
            return
        await _Counting(self.app, most, scope, receive, send).run()

    def _most(self, method: str, path: str) -> int:
        fitting = [bound for bound in self.wider if bound.method == method and bound.path.fullmatch(path)]
        return fitting[0].most() if fitting else MOST_BYTES


class _Counting:
    """Counts the received bytes of one request, and answers with 413 once the bytes exceed the limit."""

    def __init__(self, app: ASGIApp, most: int, scope: Scope, receive: Receive, send: Send) -> None:
        self.app, self.most, self.scope, self._receive, self._send = app, most, scope, receive, send
        self.seen, self.begun = 0, False

    async def run(self) -> None:
        with contextlib.suppress(BodyTooLarge):
            await self.app(self.scope, self.receive, self.send)
        if self.seen > self.most and not self.begun:
            await _refuse(self.most, self.scope, self._receive, self._send)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.seen += len(message.get("body", b""))
            if self.seen > self.most:
                raise _too_large(self.most)
        return message

    async def send(self, message: Message) -> None:
        if self.seen > self.most and not self.begun:
            return
        self.begun = True
        await self._send(message)


async def _refuse(most: int, scope: Scope, receive: Receive, send: Send) -> None:
    await answer(_too_large(most), {"Connection": "close"})(scope, receive, send)


def _too_large(most: int) -> BodyTooLarge:
    way_out = None if most == MOST_BYTES else "Ask the platform operator to raise the limit."
    return BodyTooLarge(f"A body may have at most {most} bytes.", way_out=way_out)
