"""What an app team installs to talk to GPUaaS. Names are loaded when first used: `import gpuaas_sdk` costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import errors, events, models
    from .client.auth import Bearer, ServiceAccount
    from .client.calls import Calls
    from .client.clients import AsyncClient, Client
    from .client.correlation import correlation
    from .client.models import MemberObservation, MemberReport
    from .client.request import Page
    from .controller.loop import Controller
    from .controller.observe import Look, Looks, Seen
    from .controller.outcomes import Again, Done, Failed
    from .controller.telemetry import TelemetrySender
    from .controller.work import Work
    from .machines.machine import Machine

__version__ = "0.1.0"
__all__ = [
    "Again",
    "AsyncClient",
    "Bearer",
    "Calls",
    "Client",
    "Controller",
    "Done",
    "Failed",
    "Look",
    "Looks",
    "Machine",
    "MemberObservation",
    "MemberReport",
    "Page",
    "Seen",
    "ServiceAccount",
    "TelemetrySender",
    "Work",
    "correlation",
    "errors",
    "events",
    "models",
]

_HOME = {
    "Again": "controller.outcomes",
    "AsyncClient": "client.clients",
    "Bearer": "client.auth",
    "Calls": "client.calls",
    "Client": "client.clients",
    "Controller": "controller.loop",
    "Done": "controller.outcomes",
    "Failed": "controller.outcomes",
    "Look": "controller.observe",
    "Looks": "controller.observe",
    "Machine": "machines.machine",
    "MemberObservation": "client.models",
    "MemberReport": "client.models",
    "Page": "client.request",
    "Seen": "controller.observe",
    "ServiceAccount": "client.auth",
    "TelemetrySender": "controller.telemetry",
    "Work": "controller.work",
    "correlation": "client.correlation",
}


def __getattr__(name: str) -> Any:
    if name in ("errors", "events", "models"):
        return importlib.import_module(f".client.{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
