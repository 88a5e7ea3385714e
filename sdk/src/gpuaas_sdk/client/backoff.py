"""Waiting times between retries, and the clock that measures them. Used by transport, controller and events.

Waits are jittered, so that many clients do not reconnect at the same moment after an outage.
"""

from __future__ import annotations

import random
import time


def now() -> float:
    """Return seconds of a monotonic clock that also counts while the computer is suspended, since leases expire then
    too."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Backoff:
    """Exponential backoff: `next()` returns a wait between half and all of base·2ⁿ, up to the cap."""

    def __init__(self, base: float = 0.25, cap: float = 15.0) -> None:
        self._base, self._cap, self.tries = base, cap, 0

    def next(self) -> float:
        ceiling = min(self._cap, self._base * 2 ** min(self.tries, 30))
        self.tries += 1
        return ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, keeps no secret

    def reset(self) -> None:
        self.tries = 0
