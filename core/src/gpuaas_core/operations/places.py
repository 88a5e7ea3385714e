"""Where the routes of operations are: below the project they are in, and below `/v1/operations` for any scope.

Both lead to the same functions. Below a project, the operation has to be in that project; below `/v1/operations`, the
caller is asked for the key in the operation's own scope.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Request
from fastapi.params import Depends as DependsParam
from pydantic import BaseModel

from ..http.call import REACHABLE, needs

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Place:
    prefix: str
    scope: str  # of the permission that a route asks for
    claims_at: str  # of a claim
    parameters: tuple[DependsParam, ...] = ()  # that every address below the prefix has

    def needs(self, key: str) -> dict[str, Any]:
        return needs(key, self.scope)

    def router(self, tag: str) -> APIRouter:
        return APIRouter(prefix=self.prefix, tags=[tag], dependencies=list(self.parameters))


def _project(project_id: str) -> None:
    """Only so that the contract names the parameter."""


def _scope_in_address(request: Request) -> str | None:
    return request.path_params.get("project_id")


Within = Annotated[str | None, Depends(_scope_in_address)]


def takes(model: type[BaseModel]) -> Callable[[F], F]:
    """The body of a route: the model with the fields of all targets, known only when these are registered."""

    def typed(handler: F) -> F:
        handler.__annotations__["body"] = model
        return handler

    return typed


PROJECT = Place("/v1/projects/{project_id}/operations", "project", "project", (Depends(_project),))
ANYWHERE = Place("/v1/operations", "operation", REACHABLE)
PLACES = (PROJECT, ANYWHERE)
