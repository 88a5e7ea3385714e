"""The hourly price of an allocation, from its SKU."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from ..kit.rows import Query
from .tables import allocations, nodes, skus


@dataclass(frozen=True)
class HourlyPrice:
    allocation_id: str
    sku: str | None
    price_micros_per_hour: int | None  # None: the node's SKU does not exist
    currency: str | None


_PRICES = Query(
    select(allocations.c.id.label("allocation_id"), nodes.c.sku, skus.c.price_micros_per_hour, skus.c.currency)
    .join(nodes, nodes.c.id == allocations.c.node_id)
    .outerjoin(skus, skus.c.name == nodes.c.sku)
    .where(allocations.c.id.in_(bindparam("allocations", expanding=True))),
    HourlyPrice,
)


def hourly_prices(tx: Connection, allocation_ids: Sequence[str]) -> dict[str, HourlyPrice]:
    return {row.allocation_id: row for row in _PRICES.all(tx, allocations=list(allocation_ids))}
