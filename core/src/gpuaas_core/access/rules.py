"""Deny rules in the store, and the evaluator asked with them. Called by the request's context and by explanations."""

from collections.abc import Iterable

from sqlalchemy import JSON, BigInteger, Column, Connection, Index, String, Table, select, tuple_

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


def rules_at(tx: Connection, places: Iterable[Place]) -> list[Deny]:
    place = tuple_(deny_rules.c.scope_kind, deny_rules.c.scope_id)
    rows = tx.execute(select(deny_rules).where(place.in_(list(places))).order_by(deny_rules.c.id))
    return [Deny(row.id, (row.scope_kind, row.scope_id), row.permissions, row.reason) for row in rows]


def decide(tx: Connection, principal: Principal, key: str, scope: Scope) -> Decision:
    return evaluate(principal, key, scope, rules_at(tx, scope.chain))
