"""The facts about one request (route, caller, scope, problem) that the request log and the metrics get after the answer
was sent."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from starlette.types import Scope

from ..kit.correlation import Correlation

Act = Callable[[], Awaitable[None]]
IN_SCOPE = "gpuaas.seen"


@dataclass
class Seen:
    method: str
    path: str
    at: int  # time of arrival, milliseconds
    correlation: Correlation
    route: str = ""  # the template, if a route matched
    permission: str = ""
    principal_id: str = "anonymous"
    tenant_id: str | None = None
    project_id: str | None = None
    status: int = 0
    ms: float = 0.0
    problem: dict[str, str] | None = None
    afterwards: list[Act] = field(default_factory=list[Act])  # run after the answer was sent


Watcher = Callable[[Seen], None]


def header_of(scope: Scope, name: bytes) -> str | None:
    """Return the value of the first header with this name, or None. `name` must be in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return None


def seen_in(scope: Scope) -> Seen | None:
    return scope.get(IN_SCOPE)
