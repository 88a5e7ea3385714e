"""Finds the route of a request, and calls simple handlers without the framework's dependency solver.

The framework compares a path with every route in turn and solves the dependencies of a handler again for every request.
Both cost more than the statements of a small read, so:

- `Dispatch` finds a route by the segments of the path. Whatever it does not find goes to the framework's own search,
  which also answers with 404 and 405.
- `Route` calls a handler that only reads (it takes a `Reader`) without the solver. Its caller is verified inside the
  transaction of `call.read`, so such a request needs one transaction instead of two.
- `Route` also calls a POST with a JSON body without the solver, in the framework's order: parse the body, verify the
  caller, validate the parameters and the body.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.params import File, Form
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from .call import Call, Verified
from .request_log import header_of

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
OnError: TypeAlias = Callable[[Request, Exception], Awaitable[Response]]
_FOUND = "gpuaas.route"  # in a scope: the route of the request, or None
_JSON = "application/json"
_VERIFY = Verified.dependency  # verifies the caller of a request, and returns its `Call`


async def _unverified(request: Request) -> Call:
    return Call(request)


# The caller of a handler that only reads: verified by its first `call.read`. Needs a router with `route_class=Route`.
Reader = Annotated[Call, Depends(_unverified)]


class Route(APIRoute):
    """A route that calls its handler without the framework's dependency solver, if the handler is simple enough.

    Simple handlers return a `Response`. They are a GET that takes a `Reader` and parameters of path and query only, or
    a POST that takes a `Caller` and one JSON body. Other handlers are called by the framework.

    A handler with a `Reader` must call `call.read` before it returns; otherwise its caller was never verified, and the
    request fails. If a request has invalid parameters, its caller is verified before they are reported.
    """

    direct: Handler | None = None  # `Direct` calls it before the framework's own layers
    takes_json = False  # `direct` reads a body of this content type only
    variables: Sequence[tuple[int, str]] = ()  # which segments of the path are parameters

    def get_route_handler(self) -> Handler:
        declared, endpoint = self.dependant, self.endpoint
        callers = [one.name for one in declared.dependencies if one.call is _unverified]
        self.variables = [(at, part[1:-1]) for at, part in enumerate(self.path.split("/")) if part.startswith("{")]
        if not callers:
            if _is_plain_post(self):
                self.direct, self.takes_json = _post_handler(declared, endpoint), True
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
        return handle


def _is_plain_post(route: Route) -> bool:
    """Whether the route is a POST with one `Caller`, one JSON body and otherwise only parameters of path and query."""
    declared = route.dependant
    callers = [one for one in declared.dependencies if one.call is _VERIFY]
    others = [one for one in declared.dependencies if one.call is not _VERIFY]
    bodies = declared.body_params
    return (
        route.methods == {"POST"}
        and len(callers) == 1
        and all(map(_is_of_path, others))
        and len(bodies) == 1
        and not isinstance(bodies[0].field_info, Form | File)
        and not (declared.header_params or declared.cookie_params or _is_given_more(declared))
        and all(field.field_info.annotation is str for field in declared.path_params)
        and inspect.signature(route.endpoint).return_annotation is Response
    )


def _is_of_path(dependency: Dependant) -> bool:
    """Whether the dependency is a coroutine function that takes only path parameters and, optionally, the request."""
    more = [*dependency.query_params, *dependency.header_params, *dependency.cookie_params, *dependency.body_params]
    text = all(field.field_info.annotation is str for field in dependency.path_params)
    plain = text and not (more or dependency.dependencies or _is_given_more(dependency, of_request=False))
    return plain and inspect.iscoroutinefunction(dependency.call)


def _is_given_more(declared: Dependant, *, of_request: bool = True) -> bool:
    names = (declared.response_param_name, declared.background_tasks_param_name, declared.http_connection_param_name)
    return any(names) or bool(of_request and declared.request_param_name)


def _post_handler(declared: Dependant, endpoint: Callable[..., Awaitable[Response]]) -> Handler:
    query, bodies = declared.query_params, declared.body_params
    defaults = {field.name: field.get_default() for field in query}
    required = any(field.field_info.is_required() for field in query)
    dependencies = [(one.name, _caller_of(one)) for one in declared.dependencies]

    async def handle(request: Request) -> Response:
        received = await _json_of(request)
        values: dict[str, Any] = {}
        for name, call in dependencies:
            value = await call(request)
            if name is not None:
                values[name] = value
        given, errors = defaults, []
        if required or request.scope["query_string"]:
            given, errors = request_params_to_args(query, request.query_params)
        body, more = await request_body_to_args(bodies, received, embed_body_fields=False)
        if errors or more:
            raise RequestValidationError([*errors, *more], body=received)
        names = {field.name for field in declared.path_params}
        path = {name: value for name, value in request.path_params.items() if name in names}
        return await endpoint(**given, **path, **values, **body)

    return handle


def _caller_of(dependency: Dependant) -> Callable[[Request], Awaitable[object]]:
    """Return a function that calls the dependency with its path parameters and, if it takes one, the request."""
    call, of_request = dependency.call, dependency.request_param_name
    assert call is not None
    names = [field.name for field in dependency.path_params]

    def called(request: Request) -> Awaitable[object]:
        values: dict[str, object] = {name: request.path_params[name] for name in names}
        if of_request:
            values[of_request] = request
        return call(**values)

    return called


async def _json_of(request: Request) -> object:
    """Return the parsed JSON body, or PydanticUndefined if it is empty. For an invalid body raise the same errors as
    the framework; `problems` reports them after the caller was verified."""
    try:
        return await request.json() if await request.body() else PydanticUndefined
    except json.JSONDecodeError as error:
        raise RequestValidationError(
            [{"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}]
        ) from error
    except HTTPException:
        raise
    except Exception as error:
        raise HTTPException(400, "There was an error parsing the body") from error


class Dispatch:
    """Finds the route of a request in a tree of path segments. A request without a match goes to the framework's
    search."""

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


class Direct:
    """Calls handlers with `Route.direct` without the layers that the framework puts around every handler. All other
    requests go to the framework's application."""

    def __init__(self, app: FastAPI, dispatch: Dispatch, on_error: OnError) -> None:
        self._app, self._dispatch, self._on_error = app, dispatch, on_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._dispatch.route_of(scope) if scope["type"] == "http" else None
        if not isinstance(route, Route) or route.direct is None or not _is_taken(route, scope):
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


def _is_taken(route: Route, scope: Scope) -> bool:
    return not route.takes_json or header_of(scope, b"content-type") == _JSON


Found: TypeAlias = tuple[int, APIRoute]  # with its number in the order of declaration


class _Node:
    """A node of the tree of routes: the routes whose path ends here, by method, and the nodes of the next path
    segment."""

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
        """Return the matching route that was declared first, or None if no route matches the path from segment `at`
        on."""
        if at == len(path):
            return self._routes.get(method)
        named = self._named.get(path[at])
        found = named.find(path, at + 1, method) if named else None
        if self._variable is None or not path[at]:
            return found
        other = self._variable.find(path, at + 1, method)
        return other if found is None or (other is not None and other[0] < found[0]) else found
