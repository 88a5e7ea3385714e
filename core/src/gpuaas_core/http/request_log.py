"""What the edge records about one request, passed to watchers (log lines for triage, metrics) once it is answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..kit.correlation import Correlation

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
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)  # run after the answer was sent


Watcher = Callable[[Seen], None]


def seen_in(scope: Any) -> Seen | None:
    return scope.get(IN_SCOPE)
