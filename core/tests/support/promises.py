"""What is promised in seconds is promised by a machine that keeps up. Where more wants to run than there are cores, all of
it gets its turn later; a test that compares seconds allows for exactly that."""

import os
from pathlib import Path

CORES = os.cpu_count() or 1


def promised(seconds: float) -> float:
    average, _, _, running, *_ = Path("/proc/loadavg").read_text().replace("/", " ").split()
    return seconds * max(1.0, float(average) / CORES, int(running) / CORES)
