"""Finds the route of a request, and serves reads in one transaction.

The framework compares a path with every route in turn and solves the dependencies of a handler again for every request.
Both cost more than the statements of a small read, so:

- `Dispatch` finds a route by the segments of the path. Whatever it does not find goes to the framework's own search,
  which also answers with 404 and 405.
- `Route` calls a handler that only reads (it takes a `Reader`) without the solver. Its caller is verified inside the
  transaction of `call.read`, so such a request needs one transaction instead of two.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from .call import Call

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
OnError: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
_FOUND = "gpuaas.route"  # in a scope: the route of the request, or None


async def _unverified(request: Request) -> Call:
    return Call(request)


# The caller of a handler that only reads: verified by its first `call.read`. Needs a router with `route_class=Route`.
Reader = Annotated[Call, Depends(_unverified)]


class Route(APIRoute):
    """A handler that takes a `Reader`: a GET with parameters of path and query only, which returns a `Response`.

    The handler must read with `call.read` before it returns; otherwise its caller was never verified, and the request
    fails. The caller of a request with invalid parameters is verified before these are reported. Other handlers are
    called as the framework does it.
    """

    direct: Handler | None = None  # set for reads: `Reads` calls it before the framework's own layers
    variables: Sequence[tuple[int, str]] = ()  # which segments of the path are parameters

    def get_route_handler(self) -> Handler:
        declared, endpoint = self.dependant, self.endpoint
        callers = [one.name for one in declared.dependencies if one.call is _unverified]
        if not callers:
            return super().get_route_handler()
        others = [*declared.header_params, *declared.cookie_params, *declared.body_params]
        if len(callers) != len(declared.dependencies) or len(callers) != 1 or others or self.methods != {"GET"}:
            raise TypeError(f"{self.path} is no read: it needs one Reader and has no headers, cookies or body.")
        if any(field.field_info.annotation is not str for field in declared.path_params):
            raise TypeError(f"{self.path} has a parameter in its path that is not text.")
        caller, query = callers[0] or "", declared.query_params
        defaults = {field.name: field.get_default() for field in query}
        required = any(field.field_info.is_required() for field in query)

        async def handle(request: Request) -> Response:
            call = Call(request)
            if required or request.scope["query_string"]:
                given, errors = request_params_to_args(query, request.query_params)
                if errors:
                    await call.admit()
                    raise RequestValidationError(errors)
                values = {**given, **request.path_params, caller: call}
            else:
                values = {**defaults, **request.path_params, caller: call}
            return await call.verified_by_reading(endpoint(**values))

        self.direct = handle
        self.variables = [(at, part[1:-1]) for at, part in enumerate(self.path.split("/")) if part.startswith("{")]
        return handle


class Dispatch:
    """The routes of an application, by the segments of their paths."""

    def __init__(self, router: APIRouter) -> None:
        self._search: ASGIApp = router.app
        self._root = _Node()
        for number, route in enumerate(router.routes):
            if isinstance(route, APIRoute):
                self._root.add(route.path.split("/"), number, route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.route_of(scope) if scope["type"] == "http" else None
        if route is None:
            await self._search(scope, receive, send)
            return
        scope.update(route.matches(scope)[1])
        await route.handle(scope, receive, send)

    def route_of(self, scope: Scope) -> APIRoute | None:
        if _FOUND in scope:
            return scope[_FOUND]
        found = None if scope.get("root_path") else self._root.find(scope["path"].split("/"), 0, scope["method"])
        scope[_FOUND] = found[1] if found else None
        return scope[_FOUND]


class Reads:
    """Answers reads (`Route.direct`) before the layers that the framework puts around every handler. Everything else
    goes to the application."""

    def __init__(self, app: FastAPI, dispatch: Dispatch, on_error: OnError) -> None:
        self._app, self._dispatch, self._on_error = app, dispatch, on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._dispatch.route_of(scope) if scope["type"] == "http" else None
        if not isinstance(route, Route) or route.direct is None:
            await self._app(scope, receive, send)
            return
        parts = scope["path"].split("/")
        scope["path_params"] = {name: parts[at] for at, name in route.variables}
        scope["route"], scope["endpoint"], scope["app"] = route, route.endpoint, self._app
        request = Request(scope, receive, send)
        try:
            response = await route.direct(request)
        except Exception as error:
            response = await self._on_error(request, error)
        await response(scope, receive, send)


Found: TypeAlias = tuple[int, APIRoute]  # with its number in the order of declaration


class _Node:
    """One segment of the paths of some routes."""

    __slots__ = ("_named", "_routes", "_variable")

    def __init__(self) -> None:
        self._named: dict[str, _Node] = {}
        self._variable: _Node | None = None
        self._routes: dict[str, Found] = {}

    def add(self, rest: Sequence[str], number: int, route: APIRoute) -> None:
        if not rest:
            for method in route.methods or ():
                self._routes.setdefault(method, (number, route))
        elif rest[0].startswith("{"):
            self._variable = self._variable or _Node()
            self._variable.add(rest[1:], number, route)
        else:
            self._named.setdefault(rest[0], _Node()).add(rest[1:], number, route)

    def find(self, path: Sequence[str], at: int, method: str) -> Found | None:
        """Of all routes that match, the one that was declared first."""
        if at == len(path):
            return self._routes.get(method)
        named = self._named.get(path[at])
        found = named.find(path, at + 1, method) if named else None
        if self._variable is None or not path[at]:
            return found
        other = self._variable.find(path, at + 1, method)
        return other if found is None or (other is not None and other[0] < found[0]) else found
