"""How long to wait before trying again, and which clock to wait by. Used by transport, controller and events.

Waits are jittered, so that many clients do not come back at the same moment after an outage.
"""

from __future__ import annotations

import random
import time


def now() -> float:
    """Seconds on a clock that never jumps and also counts while the machine sleeps (leases must end then too)."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Backoff:
    """`next()` gives ever longer waits, between half and the whole of base·2ⁿ, up to the cap."""

    def __init__(self, base: float = 0.25, cap: float = 15.0) -> None:
        self._base, self._cap, self.tries = base, cap, 0

    def next(self) -> float:
        ceiling = min(self._cap, self._base * 2 ** min(self.tries, 30))
        self.tries += 1
        return ceiling * (0.5 + random.random() / 2)  # noqa: S311 - spreads load, keeps no secret

    def reset(self) -> None:
        self.tries = 0
