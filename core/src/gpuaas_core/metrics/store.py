"""Metrics read from the database at scrape time, so they are correct after a restart."""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection, func, select

from ..capacity.states import NODE
from ..capacity.tables import nodes
from ..events.fanout import lag
from ..events.tables import event_heads
from ..kit.clock import Clock
from ..kit.db import Database
from ..operations.states import LIVE, OPERATION, STUCK
from ..operations.tables import operations


class StoreMetrics(Collector):
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    def collect(self) -> Iterator[Metric]:
        yield from self._db.read_now(self._read)

    def describe(self) -> list[Metric]:
        return []  # called at registration, when the database may not exist yet

    def _read(self, tx: Connection) -> list[Metric]:
        now, o = self._clock(), operations.c
        oldest = tx.execute(select(func.min(o.created_at)).where(o.status == "queued", o.not_before <= now)).scalar()
        live = select(func.count()).where(o.status == "running", o.lease_expires_at > now)
        return [
            _by("gpuaas_operations", "Operations by status", "status", OPERATION.moves, _count_by(tx, o.status)),
            _single("gpuaas_queue_age_seconds", "Age of the oldest queued operation", (now - (oldest or now)) / 1000),
            _by("gpuaas_stuck_operations", "Operations marked as stuck, by reason", "reason", STUCK, _stuck(tx)),
            _single("gpuaas_live_claims", "Operations claimed by a controller", tx.execute(live).scalar_one()),
            _by("gpuaas_nodes", "Nodes by state", "state", NODE.moves, _count_by(tx, nodes.c.state)),
            _heads(tx),
            _single("gpuaas_fanout_waiting_events", "Events not yet sent to the broker", lag(tx, now)),
        ]


def _stuck(tx: Connection) -> dict[str, int]:
    reason = operations.c.stuck_reason
    live = select(reason, func.count()).where(reason.is_not(None), operations.c.status.in_(LIVE)).group_by(reason)
    return {row[0]: row[1] for row in tx.execute(live)}


def _count_by(tx: Connection, column: Any) -> dict[str, int]:
    return {row[0]: row[1] for row in tx.execute(select(column, func.count()).group_by(column))}


def _by(name: str, help: str, label: str, known: Any, counted: dict[str, int]) -> Metric:
    """Every state has a series, also with 0: an alert on a missing series never fires."""
    family = GaugeMetricFamily(name, help, labels=[label])
    for state in known:
        family.add_metric([state], counted.get(state, 0))
    return family


def _single(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _heads(tx: Connection) -> Metric:
    family = GaugeMetricFamily("gpuaas_event_sequence", "The newest event sequence", labels=["tenant"])
    for row in tx.execute(select(event_heads)):
        family.add_metric([row.tenant_id], row.sequence)
    return family
