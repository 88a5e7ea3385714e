"""Clock and time format: integer milliseconds inside the core, RFC 3339 in the API. Tests move the clock instead of
waiting."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

Clock = Callable[[], int]


def system_clock() -> int:
    return time.time_ns() // 1_000_000


@lru_cache(10_000)
def rfc3339(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


@dataclass(frozen=True)
class Durations:
    """Durations that an operator of the platform can configure. `settings.py` reads them, and every request context has
    them."""

    lease_s: int = 30  # how long a controller holds an operation without a heartbeat
    node_key_s: int = 24 * 3600  # lifetime of a node's key; renewed after two thirds


DEFAULTS = Durations()
