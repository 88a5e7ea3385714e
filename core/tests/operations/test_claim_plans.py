"""A claim finds its operation by indexes that hold only live operations, so it costs the same whatever has ended.

PostgreSQL counts what it reads in test_claim_cost; SQLite chooses by the form of its indexes, without statistics.
"""

import gpuaas_core.api.app  # noqa: F401 - all tables
import pytest
from gpuaas_core.kit.db import metadata
from gpuaas_core.operations import claims
from sqlalchemy import create_engine

pytestmark = pytest.mark.any_store

LIVE_ONLY = ("ix_operations_queued", "ix_operations_running", "ix_operations_leases", "ix_operations_claimant")
VALUES = {"scope": "proj_1", "app": "echo", "caller": "sa_1", "holder": "holder-1", "now": 1}


@pytest.mark.parametrize(
    "statement",
    [
        *(source.statement for source in claims._SOURCES_IN_SCOPE),
        *(query.statement for query in (claims._DELAYED_IN_SCOPE, claims._LEASED_IN_SCOPE)),
    ],
)
def test_a_search_of_a_claim_uses_an_index_of_live_operations(statement) -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    text = str(statement.compile(engine, compile_kwargs={"render_postcompile": True}))
    names = statement.compile(engine).positiontup
    with engine.connect() as tx:
        plan = tx.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", tuple(VALUES.get(name, 1) for name in names)).all()
    found = [row.detail for row in plan if " operations " in f"{row.detail} "]
    assert found
    assert all(any(index in detail for index in LIVE_ONLY) for detail in found), found
