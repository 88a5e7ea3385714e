"""Owners of artifact rows. Each row belongs to a tenant or to the platform;
a tenant sees its own rows and the platform's."""

from sqlalchemy import Column, ColumnElement

from ..authz.evaluate import Scope

PLATFORM = "platform"


def owner_of(scope: Scope) -> str:
    return scope.tenant_id or PLATFORM


def tier_of(owner: str) -> str:
    return PLATFORM if owner == PLATFORM else "tenant"


def owners_seen(scope: Scope) -> list[str]:
    """Return the owners whose rows the scope may see: the scope's tenant, if it has one, and the platform."""
    return sorted({owner_of(scope), PLATFORM})


def seen_by(column: Column[str], scope: Scope) -> ColumnElement[bool]:
    return column.in_(owners_seen(scope))
