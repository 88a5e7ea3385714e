"""`@call`: turns a function that describes a Request into a method of both clients.

On `Client` the method sends and returns the answer, on `AsyncClient` it returns an awaitable of it, and
`Calls.name.request(...)` gives the bare Request, for those who send the same intention again (the controller loop).
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
        """What would be sent. The description knows no client, so it gets none."""
        return self._describe(None, *args, **kwargs)

    @overload
    def __get__(self, client: None, owner: type) -> call[P, T]: ...
    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self

        @functools.wraps(self._describe)
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.send(self.request(*args, **kwargs))

        return bound
