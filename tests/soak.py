"""`make soak`: the proofs that `make test` runs once, repeated in full. Each part takes less than an hour.

`make soak ONLY=cycles` runs one part, `make soak ONLY=help` lists them; without ONLY all run, one after the other. The
counts are set where the tests are, by GPUAAS_SOAK (core/tests/support/repeats.py).
"""

import argparse
import os
import sys
import time
from typing import Any

from tests.stages import ROOT, Stage, run, stage_of, stage_report, summary

ON_POSTGRESQL = {"GPUAAS_TEST_DATABASE": "postgresql"}
MODELS = ["core/tests/properties/test_life_model.py", "core/tests/properties/test_partition_model.py"]
SCHEMATHESIS = "core/tests/properties/test_schemathesis.py"
CRASHES, LAB = "core/tests/crash", "tests/lab"
ON_BOTH = "not sqlite_only and not any_store"


def _part(name: str, what: str, *words: str, **more: Any) -> tuple[str, Stage]:
    return what, stage_of(name, "-s", *words, minutes=60, GPUAAS_SOAK="1", **more)


PARTS = [
    _part("cycles", "50 cycles of a worker: added, drained, removed", f"{LAB}/test_cycles.py", lab=True),
    _part("first-sbatch", "the first sbatch on 50 fresh instances", f"{LAB}/test_first_sbatch.py", lab=True),
    _part(
        "controller-kills",
        "the Slurm controller killed at every point and in the middle of every command",
        f"{LAB}/test_sieve.py",
        lab=True,
    ),
    _part("core-kills", "the core killed at every step of a deploy", f"{LAB}/test_kill_journey.py", lab=True),
    _part("copies", "copied and killed machine identities", f"{CRASHES}/test_renewal_kills.py"),
    _part("models", "random lives of instances and machines against their models", *MODELS),
    _part("models-postgresql", "the same on PostgreSQL", *MODELS, **ON_POSTGRESQL),
    _part("schemathesis", "more requests made up from the contract for each route", SCHEMATHESIS),
    _part("schemathesis-postgresql", "the same on PostgreSQL", SCHEMATHESIS, **ON_POSTGRESQL),
    _part("races", "kills, event storms and two controllers, in full", CRASHES, marks="slow"),
    _part("races-postgresql", "the same on PostgreSQL", CRASHES, marks=f"slow and {ON_BOTH}", **ON_POSTGRESQL),
]


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    only = options.parse_args().only
    chosen = [stage for _, stage in PARTS if only in ("", stage.name)]
    if not chosen:
        print("\n".join(["The parts of make soak:", *(f"  ONLY={stage.name:24} {what}" for what, stage in PARTS)]))
        return 0 if only == "help" else 2
    os.chdir(ROOT)
    started, outcomes = time.monotonic(), []
    for stage in chosen:
        outcome, text = run(stage)
        outcomes.append(outcome)
        print(stage_report(outcome, text), flush=True)
    return summary(outcomes, time.monotonic() - started, cores=2)


if __name__ == "__main__":
    sys.exit(main())
