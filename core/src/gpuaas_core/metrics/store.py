"""Metrics that are read from the database when Prometheus scrapes them, so that they are correct after a restart."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from ..capacity.numbers import nodes_by_state
from ..capacity.states import NODE
from ..counters.reads import all_counters
from ..events.fanout import lag
from ..kit.clock import Clock
from ..kit.db import Database
from ..operations import numbers
from ..operations.states import OPERATION, STUCK


class StoreMetrics(Collector):
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    def collect(self) -> Iterator[Metric]:
        yield from self._db.read_now(self._read)

    def describe(self) -> list[Metric]:
        return []  # called at registration, when the database may not exist yet

    def _read(self, tx: Connection) -> list[Metric]:
        now = self._clock()
        age_s = numbers.queue_age_ms(tx, now) / 1000
        return [
            _by("gpuaas_operations", "Operations by status", "status", OPERATION.moves, numbers.by_status(tx)),
            _single("gpuaas_queue_age_seconds", "Age of the oldest queued operation", age_s),
            _by(
                "gpuaas_stuck_operations",
                "Operations marked as stuck, by reason",
                "reason",
                STUCK,
                numbers.stuck_by_reason(tx),
            ),
            _single("gpuaas_live_claims", "Operations claimed by a controller", numbers.live_claims(tx, now)),
            _by("gpuaas_nodes", "Nodes by state", "state", NODE.moves, nodes_by_state(tx)),
            _heads(tx),
            _single("gpuaas_fanout_waiting_events", "Events not yet sent to the broker", lag(tx, now)),
        ]


def _by(name: str, help: str, label: str, known: Iterable[str], counted: dict[str, int]) -> Metric:
    """Build a metric with one series per known state. A state with the count 0 has a series too, because an alert on a
    missing series never fires."""
    family = GaugeMetricFamily(name, help, labels=[label])
    for state in known:
        family.add_metric([state], counted.get(state, 0))
    return family


def _single(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _heads(tx: Connection) -> Metric:
    family = GaugeMetricFamily("gpuaas_event_sequence", "The newest event sequence", labels=["tenant"])
    for row in all_counters(tx):
        family.add_metric([row.tenant_id], row.sequence)
    return family
