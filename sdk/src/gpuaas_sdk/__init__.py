"""The package that an app team installs to use GPUaaS. Submodules are loaded on first use, so `import gpuaas_sdk` is
cheap."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .client import errors, events, models
    from .client.auth import Bearer, ServiceAccount
    from .client.calls import Calls
    from .client.clients import AsyncClient, Client
    from .client.correlation import correlation
    from .client.models import MemberObservation, MemberReport
    from .client.request import Page
    from .controller.loop import Controller
    from .controller.observe import Observation, ObserveContext, ObservePolicy
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
    "Machine",
    "MemberObservation",
    "MemberReport",
    "Observation",
    "ObserveContext",
    "ObservePolicy",
    "Page",
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
    "Machine": "machines.machine",
    "MemberObservation": "client.models",
    "MemberReport": "client.models",
    "Observation": "controller.observe",
    "ObserveContext": "controller.observe",
    "ObservePolicy": "controller.observe",
    "Page": "client.request",
    "ServiceAccount": "client.auth",
    "TelemetrySender": "controller.telemetry",
    "Work": "controller.work",
    "correlation": "client.correlation",
}


def __getattr__(name: str) -> object:
    if name in ("errors", "events", "models"):
        return importlib.import_module(f".client.{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
