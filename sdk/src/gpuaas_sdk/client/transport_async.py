"""The asyncio counterpart of `Transport`, used by controllers. It is a separate module so that the CLI does not load
asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx2

from .auth import Auth
from .backoff import now
from .errors import GpuaasError
from .request import Request
from .transport import USER_AGENT, Exchange, trusted

T = TypeVar("T")


class AsyncTransport:
    """asyncio transport. Safe to share between tasks."""

    def __init__(self, api: str, auth: Auth, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self.api, self.auth, self._sleep = api, auth, sleep
        self.http = httpx2.AsyncClient(base_url=api, headers={"User-Agent": USER_AGENT}, verify=trusted(api))
        self._renewing = asyncio.Lock()

    async def send(self, request: Request[T]) -> T:
        exchange = Exchange(request, self.auth, self.api)
        while True:
            try:
                if not request.anonymous:
                    await self.sign_in_if_due()
                return await self._once(exchange)
            except GpuaasError as error:
                await self._sleep(exchange.wait_before_retry(error))

    async def _once(self, exchange: Exchange[T]) -> T:
        try:
            return exchange.read(await self.http.request(**exchange.arguments()))
        except httpx2.HTTPError as error:
            raise exchange.no_answer(error) from error

    @asynccontextmanager
    async def stream(self, request: Request[T], headers: Mapping[str, str]) -> AsyncGenerator[httpx2.Response]:
        exchange = Exchange(request, self.auth, self.api)
        await self.sign_in_if_due()
        try:
            async with self.http.stream(**exchange.arguments(headers)) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise exchange.stream_refused(response)
                yield response
        except httpx2.HTTPError as error:
            raise exchange.no_answer(error) from error

    async def sign_in_if_due(self) -> None:
        async with self._renewing:
            if self.auth.due() and (renewal := self.auth.renewal()):
                asked_at = now()
                self.auth.accept(await self._once(Exchange(renewal, self.auth, self.api)), asked_at)
