"""Deny rules in the database, and the evaluator with them. Called by the request's context and by explanations."""

from collections.abc import Iterable

from sqlalchemy import JSON, BigInteger, Column, Connection, Index, String, Table, bindparam, select, tuple_

from ..kit.db import metadata
from .evaluate import Decision, Deny, Place, Principal, Scope, evaluate

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

_AT = (  # part of every request, so built once
    select(deny_rules)
    .where(tuple_(deny_rules.c.scope_kind, deny_rules.c.scope_id).in_(bindparam("places", expanding=True)))
    .order_by(deny_rules.c.id)
)


def rules_at(tx: Connection, places: Iterable[Place]) -> list[Deny]:
    rows = tx.execute(_AT, {"places": list(places)})
    return [Deny(row.id, (row.scope_kind, row.scope_id), row.permissions, row.reason) for row in rows]


def decide(tx: Connection, principal: Principal, key: str, scope: Scope) -> Decision:
    return evaluate(principal, key, scope, rules_at(tx, scope.chain))
