"""No body is read beyond 1 MiB, whoever sends it: by its announced length, and while it arrives.

Outermost but for the correlation id, so that a flood costs no look at the store.
"""

import contextlib
from typing import Any

from starlette.datastructures import Headers

from ..kit.problems import BodyTooLarge
from .problems import answer

MOST_BYTES = 1024 * 1024


class Bounded:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isascii() and announced.isdigit() and int(announced[:20]) > MOST_BYTES:
            await _refuse(scope, receive, send)
            return
        await _Counting(self.app, scope, receive, send).run()


class _Counting:
    """Counts what arrives. Once it is too much, whatever the application then says is replaced by the refusal."""

    def __init__(self, app: Any, scope: Any, receive: Any, send: Any) -> None:
        self.app, self.scope, self._receive, self._send = app, scope, receive, send
        self.seen, self.begun = 0, False

    async def run(self) -> None:
        with contextlib.suppress(BodyTooLarge):
            await self.app(self.scope, self.receive, self.send)
        if self.seen > MOST_BYTES and not self.begun:
            await _refuse(self.scope, self._receive, self._send)

    async def receive(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.request":
            self.seen += len(message.get("body", b""))
            if self.seen > MOST_BYTES:
                raise _too_large()
        return message

    async def send(self, message: Any) -> None:
        if self.seen > MOST_BYTES and not self.begun:
            return
        self.begun = True
        await self._send(message)


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    await answer(_too_large(), {"Connection": "close"})(scope, receive, send)


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"A body may have at most {MOST_BYTES} bytes.")
