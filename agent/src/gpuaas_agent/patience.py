"""How long to wait after the n-th failure in a row: soon at first, 15 s at most, never in step with others."""

import random

LONGEST_S = 15.0


def wait_s(failures: int, dice: random.Random | None = None) -> float:
    ceiling = min(LONGEST_S, 0.5 * 2 ** min(failures, 10))
    return (dice or random).uniform(ceiling / 2, ceiling)
