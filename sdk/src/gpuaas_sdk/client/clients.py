"""The blocking and the asyncio client. Both have the same methods (see calls/) and behaviour; those of `AsyncClient`
are awaited.

    with Client("https://gpu.example", Bearer(token)) as client:
        for instance in client.every(Calls.list_instances, project_id): ...

    async with AsyncClient.for_service_account(ServiceAccount.load("identity.json")) as client:
        await client.get_instance(client.project_id, "inst_…")

Scripts, the CLI and controllers start here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from .auth import Auth, Bearer, ServiceAccount, ServiceAccountAuth
from .call import call
from .calls import Calls
from .request import Page, Request
from .transport import Transport

if TYPE_CHECKING:
    from .transport_async import AsyncTransport

P = ParamSpec("P")
T = TypeVar("T")


def _address(api: str) -> str:
    if not api.startswith(("http://", "https://")):
        raise ValueError(f"{api!r} is not an address of an API: it starts with http:// or https://")
    return api.rstrip("/")


def _next(request: Request[Page[T]], page: Page[T]) -> Request[Page[T]]:
    return dataclasses.replace(request, query={**request.query, "cursor": page.next_cursor})


class Client(Calls):
    """Blocking client for scripts, the CLI and tests.

    With an `idempotency_key` of your own, a script can safely run again after an unclear failure: under the same key
    the platform acts once.
    """

    def __init__(
        self, api: str, auth: Auth | None = None, *, project_id: str = "", idempotency_key: str | None = None
    ) -> None:
        self.project_id, self._key = project_id, idempotency_key
        self.source_addresses: list[str] = []
        self.transport = Transport(_address(api), auth or Bearer())

    @classmethod
    def for_service_account(cls, account: ServiceAccount) -> Self:
        made = cls(account.api, ServiceAccountAuth(account), project_id=account.project_id)
        made.source_addresses = account.source_addresses
        return made

    def send(self, request: Request[T]) -> T:
        planned = (request.body or {}).get("validate_only")  # asking what would happen is not yet the intention
        if self._key and request.method != "GET" and not planned:
            request = dataclasses.replace(request, key=self._key)
        return self.transport.send(request)

    def every(self, listing: call[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        """Iterate over all items of a list, page by page."""
        request = listing.request(*args, **kwargs)
        while True:
            page = self.send(request)
            yield from page.items
            if not page.next_cursor:
                return
            request = _next(request, page)

    def close(self) -> None:
        self.transport.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Calls):
    """asyncio client for controllers and servers."""

    def __init__(self, api: str, auth: Auth | None = None, *, project_id: str = "") -> None:
        self.project_id, self.account_id = project_id, ""
        self.source_addresses: list[str] = []
        from .transport_async import AsyncTransport

        self.transport: AsyncTransport = AsyncTransport(_address(api), auth or Bearer())

    @classmethod
    def for_service_account(cls, account: ServiceAccount) -> Self:
        made = cls(account.api, ServiceAccountAuth(account), project_id=account.project_id)
        made.source_addresses, made.account_id = account.source_addresses, account.id
        return made

    async def send(self, request: Request[T]) -> T:
        return await self.transport.send(request)

    async def every(self, listing: call[P, Page[T]], *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        """Iterate over all items of a list, page by page."""
        request = listing.request(*args, **kwargs)
        while True:
            page = await self.send(request)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            request = _next(request, page)

    async def close(self) -> None:
        await self.transport.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
