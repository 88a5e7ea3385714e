"""The delay after the n-th consecutive failure: short at first, 15 s at most, with jitter."""

import random

LONGEST_S = 15.0


def wait_s(failures: int, dice: random.Random | None = None) -> float:
    ceiling = min(LONGEST_S, 0.5 * 2 ** min(failures, 10))
    return (dice or random).uniform(ceiling / 2, ceiling)
