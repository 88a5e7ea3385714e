"""Where a fetch gets what it fetches: a caller names an artifact, the machine is told a delivery of its own."""

from typing import Any

from sqlalchemy import Row

from ..access.context import Context
from .errors import DeliveryUnavailable


def resolve_fetch(ctx: Context, node: Row[Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """From `artifact_id` to `delivery`, `sha256` and `size`; everything else stays as it was asked for."""
    raise DeliveryUnavailable(f"This platform has no artifacts to deliver to {node.name!r} yet.")
