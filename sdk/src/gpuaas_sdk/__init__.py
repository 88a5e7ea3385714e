"""What an app team installs to talk to GPUaaS. Names are loaded when first used: `import gpuaas_sdk` costs nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import errors, events, models
    from .auth import Bearer, ServiceAccount
    from .calls import Calls
    from .client import AsyncClient, Client
    from .controller import Controller
    from .models import MemberObservation, MemberReport
    from .observing import Look, Looks, Seen
    from .outcomes import Again, Done, Failed
    from .request import Page
    from .telemetry import TelemetrySender
    from .trail import correlation
    from .work import Work

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
    "Again": "outcomes",
    "AsyncClient": "client",
    "Bearer": "auth",
    "Calls": "calls",
    "Client": "client",
    "Controller": "controller",
    "Done": "outcomes",
    "Failed": "outcomes",
    "Look": "observing",
    "Looks": "observing",
    "MemberObservation": "models",
    "MemberReport": "models",
    "Page": "request",
    "Seen": "observing",
    "ServiceAccount": "auth",
    "TelemetrySender": "telemetry",
    "Work": "work",
    "correlation": "trail",
}


def __getattr__(name: str) -> Any:
    if name in ("errors", "events", "models"):
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
