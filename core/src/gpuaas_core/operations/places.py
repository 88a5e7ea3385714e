"""The two path prefixes of operation routes: below a project, and below `/v1/operations` for any scope.

Both prefixes lead to the same functions. Below a project, the operation must be in that project; below
`/v1/operations`, the permission is checked in the operation's own scope.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.params import Depends as DependsParam
from pydantic import BaseModel

from ..http.call import REACHABLE, Marks, needs
from ..http.routing import Route

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Place:
    prefix: str
    scope: str  # of the permission that a route asks for
    claims_at: str  # of a claim
    parameters: tuple[DependsParam, ...] = ()  # that every address below the prefix has

    def needs(self, key: str) -> Marks:
        return needs(key, self.scope)

    def router(self, tag: str) -> APIRouter:
        return APIRouter(prefix=self.prefix, tags=[tag], dependencies=list(self.parameters), route_class=Route)


# Both are coroutines, because the framework calls a plain function in another thread.


async def _project(project_id: str) -> None:
    """Do nothing: as a dependency, this function makes the OpenAPI document name the path parameter `project_id`."""


async def _scope_in_address(request: Request) -> str | None:
    return request.path_params.get("project_id")


Within = Annotated[str | None, Depends(_scope_in_address)]


def takes(model: type[BaseModel]) -> Callable[[F], F]:
    """Return a decorator that sets the body model of a route. The model has the fields of all targets, so it is known
    only after the targets were registered."""

    def typed(handler: F) -> F:
        handler.__annotations__["body"] = model
        return handler

    return typed


PROJECT = Place("/v1/projects/{project_id}/operations", "project", "project", (Depends(_project),))
ANYWHERE = Place("/v1/operations", "operation", REACHABLE)
PLACES = (PROJECT, ANYWHERE)
