"""How an instance is run and where its control plane stands: what was asked for, and what policy makes of it.

Requests carry hints; `catalog.admission` decides, and what it refuses is refused here with this room's own error.
"""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..catalog.admission import modes_for
from ..policy.modes import Modes
from .errors import OperatingModeRefused

HINTS = ("operating_mode", "control_plane_scope", "runtime_backend", "tenant_boundary_mode")


def requested(body: Any) -> dict[str, str]:
    """Only what somebody said."""
    return {hint: getattr(body, hint) for hint in HINTS if getattr(body, hint) is not None}


def effective(ctx: Context, asked: dict[str, str], version: Row[Any]) -> Modes:
    decided = modes_for(ctx, version, asked)
    if decided.refused:
        raise OperatingModeRefused(decided.refused)
    return decided
