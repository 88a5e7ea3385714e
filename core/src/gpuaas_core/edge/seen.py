"""What the edge saw of one request, told to those who watch (log lines for triage, metrics) once it is answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..ledger.correlation import Correlation

IN_SCOPE = "gpuaas.seen"


@dataclass
class Seen:
    method: str
    path: str
    at: int  # milliseconds, when it came in
    correlation: Correlation
    route: str = ""  # the template, when a route was found
    permission: str = ""
    principal_id: str = "anonymous"
    tenant_id: str | None = None
    project_id: str | None = None
    status: int = 0
    ms: float = 0.0
    problem: dict[str, str] | None = None
    afterwards: list[Callable[[], Awaitable[None]]] = field(default_factory=list)  # done once the answer is sent


Watcher = Callable[[Seen], None]


def seen_in(scope: Any) -> Seen | None:
    return scope.get(IN_SCOPE)
