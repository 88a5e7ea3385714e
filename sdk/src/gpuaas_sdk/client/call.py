"""`@call`: turns a function that describes a Request into a method of both clients.

On `Client` the method sends the request and returns the answer; on `AsyncClient` it returns an awaitable.
`Calls.name.request(...)` returns the Request without sending it, for callers that send the same request again (the
controller loop).
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from .request import Request

if TYPE_CHECKING:
    from .clients import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")


class call(Generic[P, T]):
    def __init__(self, describe: Callable[Concatenate[Any, P], Request[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    def request(self, *args: P.args, **kwargs: P.kwargs) -> Request[T]:
        """Build the Request without sending it. The decorated function is called without a client."""
        return self._describe(None, *args, **kwargs)

    @overload
    def __get__(self, client: None, owner: type) -> call[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Client | AsyncClient | None, owner: type) -> call[P, T] | Callable[P, T | Awaitable[T]]:
        if client is None:
            return self

        @functools.wraps(self._describe)
        def bound(*args: P.args, **kwargs: P.kwargs) -> T | Awaitable[T]:
            return client.send(self.request(*args, **kwargs))

        return bound
