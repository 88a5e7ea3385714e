"""Triage finds its rows by indexes: what it reads does not grow with the events of a project."""

from typing import Any

import gpuaas_core.api.app  # noqa: F401 - all tables
import pytest
from gpuaas_core.audit import by_correlation as audit
from gpuaas_core.events import by_correlation as events
from gpuaas_core.instances.reads import instance_names
from gpuaas_core.kit.db import metadata
from gpuaas_core.operations.reads import with_correlation
from sqlalchemy import Connection, create_engine, event

pytestmark = pytest.mark.any_store


def _read_everything(tx: Connection) -> None:
    events.newest(tx, "cor-12345678", [("ten_1", "op_1"), ("ten_1", "op_2")], limit=500)
    audit.decisions(tx, "cor-12345678", left_out="apps.operation.work", limit=500)
    with_correlation(tx, "cor-12345678", limit=500)
    instance_names(tx, ["inst_1", "inst_2"])


def test_every_query_of_triage_uses_an_index() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    asked: list[tuple[str, Any]] = []
    with engine.connect() as tx:
        event.listen(tx, "before_cursor_execute", lambda _c, _cur, sql, values, *_: asked.append((sql, values)))
        _read_everything(tx)
        queries = list(asked)
        plans = [_plan(tx, sql, values) for sql, values in queries]
    assert len(plans) == 5
    assert all("USING INDEX" in plan and "SCAN" not in plan for plan in plans), plans
    assert any("ix_events_subject" in plan for plan in plans), plans


def _plan(tx: Connection, sql: str, values: Any) -> str:
    rows = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)
    return "; ".join(row.detail for row in rows)
