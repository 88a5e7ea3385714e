"""Reads deny rules from the database for the evaluator. Called by the request context and by access explanations."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NewType, TypeAlias

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Index,
    String,
    Table,
    and_,
    bindparam,
    literal,
    or_,
    select,
)

from ..kit.db import metadata
from ..kit.json_types import JsonValue
from ..kit.rows import Query
from .evaluate import PLATFORM, Decision, Deny, Place, Principal, Scope, evaluate
from .ids import PrincipalId, TenantId

DenyRuleId = NewType("DenyRuleId", str)
PlaceColumns: TypeAlias = tuple[str, ColumnElement[str]]
ScopeAndRules: TypeAlias = tuple[Scope, list[Deny]]

deny_rules = Table(
    "deny_rules",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("scope_kind", String(20), nullable=False),
    Column("scope_id", String(40), nullable=False),
    Column("permissions", JSON, nullable=False),
    Column("reason", String(400), nullable=False),
    Column("created_by", String(40), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Index("ix_deny_rules_scope", "scope_kind", "scope_id"),
)


@dataclass(frozen=True)
class DenyRuleRow:
    id: DenyRuleId
    scope_kind: str
    scope_id: str
    permissions: JsonValue  # a list, unless the row was damaged
    reason: str
    created_by: PrincipalId
    created_at: int

    @property
    def rule(self) -> Deny:
        return Deny(self.id, (self.scope_kind, self.scope_id), self.permissions, self.reason)


@dataclass(frozen=True)
class RuledRow:
    """A scope's row joined with one deny rule that applies in the scope, or with none."""

    tenant_id: TenantId
    rule_id: DenyRuleId | None
    scope_kind: str | None
    scope_id: str | None
    permissions: JsonValue
    reason: str | None


DENY_RULES = Query(select(deny_rules), DenyRuleRow)


def at_places(*places: PlaceColumns) -> ColumnElement[bool]:
    """Return the SQL condition that a deny rule belongs to one of these
    scopes (each given as kind and expression of its id)."""
    kind, where = deny_rules.c.scope_kind, deny_rules.c.scope_id
    return or_(*(and_(kind == place, where == at) for place, at in places))


def with_rules_at(table: Table, tenant_id: ColumnElement[str], *places: PlaceColumns) -> Query[RuledRow]:
    """Return the query for a scope by its id (parameter `place`),
    joined with the deny rules of these scopes and of the platform."""
    d = deny_rules.c
    rules = at_places(*places, (PLATFORM[0], literal(PLATFORM[1], String)))
    columns = (tenant_id.label("tenant_id"), d.id.label("rule_id"), d.scope_kind, d.scope_id, d.permissions, d.reason)
    statement = select(*columns).select_from(table.outerjoin(deny_rules, rules))
    return Query(statement.where(table.c.id == bindparam("place")), RuledRow).order_by(d.id)


def rules_in(rows: Sequence[RuledRow]) -> list[Deny]:
    return [
        Deny(row.rule_id, (row.scope_kind or "", row.scope_id or ""), row.permissions, row.reason or "")
        for row in rows
        if row.rule_id is not None
    ]


@functools.cache
def _rules_at(kinds: tuple[str, ...]) -> Query[DenyRuleRow]:
    """Return the query for the deny rules of a chain of scopes of these kinds.
    It is cached, because every request runs it."""
    places = ((kind, bindparam(f"place_{number}", type_=String)) for number, kind in enumerate(kinds))
    return DENY_RULES.where(at_places(*places)).order_by(deny_rules.c.id)


def rules_at(tx: Connection, places: Sequence[Place]) -> list[Deny]:
    rows = _rules_at(tuple(kind for kind, _ in places))
    return [row.rule for row in rows.all(tx, **{f"place_{number}": at for number, (_, at) in enumerate(places)})]


def with_rules(scope_of: Callable[[Connection, str], Scope]) -> Callable[[Connection, str], ScopeAndRules]:
    """Return a function that reads a scope with `scope_of`, and the deny rules of the scope with a second query."""

    def read(tx: Connection, place_id: str) -> ScopeAndRules:
        scope = scope_of(tx, place_id)
        return scope, rules_at(tx, scope.chain)

    return read


def decide(tx: Connection, principal: Principal, key: str, scope: Scope) -> Decision:
    return evaluate(principal, key, scope, rules_at(tx, scope.chain))
