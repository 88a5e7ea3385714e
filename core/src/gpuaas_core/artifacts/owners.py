"""Which tier (a tenant or the platform) owns a row, and which rows each tier may see."""

from typing import Any

from ..authz.evaluate import Scope

PLATFORM = "platform"


def owner_of(scope: Scope) -> str:
    return scope.tenant_id or PLATFORM


def tier_of(owner: str) -> str:
    return PLATFORM if owner == PLATFORM else "tenant"


def seen_by(column: Any, scope: Scope) -> Any:
    """A tenant sees its own rows and the platform's; the platform sees its own."""
    return column.in_({owner_of(scope), PLATFORM})
