"""Ownership of artifact rows: a tenant or the platform owns a row, and this decides which rows each may see."""

from sqlalchemy import Column, ColumnElement

from ..authz.evaluate import Scope

PLATFORM = "platform"


def owner_of(scope: Scope) -> str:
    return scope.tenant_id or PLATFORM


def tier_of(owner: str) -> str:
    return PLATFORM if owner == PLATFORM else "tenant"


def owners_seen(scope: Scope) -> list[str]:
    """Return whose rows the scope sees: a tenant its own and the platform's, the platform its own."""
    return sorted({owner_of(scope), PLATFORM})


def seen_by(column: Column[str], scope: Scope) -> ColumnElement[bool]:
    return column.in_(owners_seen(scope))
