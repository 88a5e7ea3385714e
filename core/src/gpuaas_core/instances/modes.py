"""How an instance is run and where its control plane stands: what was asked for, and what the platform makes of it.

Requests carry hints. `effective` is the one place that decides; policy overlays plug in here.
"""

from dataclasses import asdict, dataclass
from typing import Any

from .errors import OperatingModeRefused

HINTS = ("operating_mode", "control_plane_scope", "runtime_backend", "tenant_boundary_mode")


@dataclass(frozen=True)
class Modes:
    operating_mode: str = "tenant_dedicated"
    control_plane_scope: str = "project"
    runtime_backend: str = "bare_metal"
    tenant_boundary_mode: str = "tenant_isolated"

    def columns(self) -> dict[str, str]:
        return asdict(self)


def requested(body: Any) -> dict[str, str]:
    """Only what somebody said."""
    return {hint: getattr(body, hint) for hint in HINTS if getattr(body, hint) is not None}


def effective(asked: dict[str, str], manifest: dict[str, Any]) -> Modes:
    """Instances are tenant-dedicated and project-owned, on the backend of their app; a hint never widens that."""
    if asked.get("operating_mode") == "platform_managed" or asked.get("control_plane_scope") == "platform":
        raise OperatingModeRefused("No platform policy enables platform_managed for this app.")
    return Modes(runtime_backend=manifest["runtime_backend"])
