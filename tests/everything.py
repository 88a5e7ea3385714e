"""`make test`: every check, each with its time and its CPU seconds; a skipped test counts as a failure.

Stages are a table. Each lane takes the next of its stages: one lane those with two workers (`wide`), `NARROW` lanes the
others. A stage computes in a part of its time and waits in the rest (for hosts that boot, disks, leases), so these lanes
keep two cores busy. Those that wait most come first: the last ones must use both cores by themselves. Stages that only
compute and promise no time (`behind`) have a lane with low priority, and all lanes when the others are done.
What a stage printed is shown when it ends. `--fast` leaves out what boots real hosts or another database.
`--only WORD` (make test ONLY=claims) runs the stages with WORD in their name, or else the tests with it in their path or name.
The repetition of proofs that run here once is in tests/soak.py.
"""

import argparse
import contextlib
import os
import sys
import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any

from tests.stages import BIN, ROOT, Outcome, Stage, run, stage_of, stage_report, summary

CORES = 2  # a bigger machine helps by its speed, a smaller one waits longer
NARROW = 1
SOURCES = ["core", "sdk", "agent", "cli", "lab", "apps/slurm", "tests", "bench", "tools"]

# These make labs of their own.
MAKE_UP, OWN_MACHINE = "tests/lab/test_make_up.py", "tests/lab/test_own_machine.py"
LAB_JOURNEYS = ["tests/lab", "tests/browser/test_lab_journey.py", "tests/browser/test_lab_trouble.py"]
BROWSER = "tests/browser"
PROPERTIES, SCHEMATHESIS = "core/tests/properties", "core/tests/properties/test_schemathesis.py"
ON_POSTGRESQL: dict[str, Any] = {"fast": False, "GPUAAS_TEST_DATABASE": "postgresql"}
MATTERS_ON_POSTGRESQL = "not sqlite_only and not any_store"
# Two workers share the files, in the order that tests/conftest.py gives them. They wait for hosts more than they compute:
# together they need one core.
BY_FILE = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]


def _both(name: str, *words: str, **more: Any) -> Stage:
    """Tests of two workers. Each starts with half of the list, so that a file's fixtures are mostly created once; a
    worker that is done takes tests from the other."""
    return stage_of(name, "-n", "2", "--dist", "worksteal", *words, wide=True, **more)


def _behind(name: str, *words: str, **more: Any) -> Stage:
    return stage_of(name, *words, behind=True, **more)


def _without(*paths: str) -> list[str]:
    return [f"--ignore={path}" for path in paths]


STAGES = [
    Stage("format", [str(BIN / "ruff"), "format", "--check", "-q", *SOURCES]),
    Stage("lint", [str(BIN / "ruff"), "check", "-q", *SOURCES]),
    Stage("house report", [str(BIN / "python"), "tools/house_report.py"]),
    Stage("import contracts", [str(BIN / "lint-imports"), "--no-cache"]),
    Stage("contracts are fresh", [str(BIN / "gpuaas-core"), "contracts", "contracts", "--check"]),
    Stage("SDK models are fresh", [str(BIN / "python"), "-m", "gpuaas_sdk.generate", "--check"]),
    Stage("types", [str(BIN / "pyright"), "--level", "error"], behind=True),
    _behind("schemathesis", SCHEMATHESIS, fast=False),
    _behind("properties", PROPERTIES, *_without(SCHEMATHESIS)),
    _behind("schemathesis on PostgreSQL", SCHEMATHESIS, **ON_POSTGRESQL),
    _behind(
        "properties on PostgreSQL", PROPERTIES, *_without(SCHEMATHESIS), marks=MATTERS_ON_POSTGRESQL, **ON_POSTGRESQL
    ),
    stage_of("lab: journeys", *LAB_JOURNEYS, *BY_FILE, *_without(MAKE_UP, OWN_MACHINE), lab=True),
    _both("crashes and races", "core/tests/crash", marks="slow", fast=False),
    _both(
        "crashes and races on PostgreSQL",
        "core/tests/crash",
        marks=f"slow and {MATTERS_ON_POSTGRESQL}",
        **ON_POSTGRESQL,
    ),
    _both("core", "core/tests", *_without(PROPERTIES), marks="not slow"),
    _both(
        "core on PostgreSQL",
        "core/tests",
        *_without(PROPERTIES),
        marks=f"not slow and {MATTERS_ON_POSTGRESQL}",
        **ON_POSTGRESQL,
    ),
    stage_of("browser", BROWSER, fast=False),
    stage_of("the house", "tests/boundary"),
    stage_of("lab: make up", MAKE_UP, lab=True),
    stage_of("cli", "cli/tests"),
    stage_of("lab: Slurm app", "apps/slurm/tests", lab=True),
    stage_of("sdk", "sdk/tests"),
    stage_of("lab: own machine", OWN_MACHINE, lab=True),
    stage_of("lab: hosts", "lab/tests", lab=True),
    Stage("console: lint, types, logic", ["npm", "--silent", "--prefix", "console", "run", "check"]),
    *[stage_of(package, f"{package}/tests") for package in ("agent", "apps/slurm", "lab")],
    stage_of("lab: agent", "agent/tests", lab=True),
]


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--fast", action="store_true")
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    os.chdir(ROOT)
    stages = [s for s in _chosen(chosen.only) if s.fast or not chosen.fast]
    started = time.monotonic()
    return summary(run_all(stages), time.monotonic() - started, CORES)


def _chosen(word: str) -> list[Stage]:
    """The stages with this word in their name; if there are none, the tests with it in their path or name."""
    named = [stage for stage in STAGES if word in stage.name]
    if named:
        return named
    return [replace(stage, argv=[*stage.argv, "-k", word]) for stage in STAGES if stage.tests]


def run_all(stages: list[Stage]) -> list[Outcome]:
    """Run every stage once, in `1 + NARROW` lanes and the one behind them. A lane whose stages are done helps the next."""
    wide = deque(stage for stage in stages if stage.wide)
    narrow = deque(stage for stage in stages if not stage.wide and not stage.behind)
    behind = deque(stage for stage in stages if stage.behind)
    outcomes: dict[str, Outcome] = {}
    printing = threading.Lock()

    def lane(*queues: deque[Stage]) -> None:
        for queue in queues:
            with contextlib.suppress(IndexError):  # none is left
                while True:
                    outcome, text = run(stage := queue.popleft())
                    with printing:  # what a stage printed stays in one piece
                        outcomes[stage.name] = outcome
                        print(stage_report(outcome, text), flush=True)

    lanes = [(wide, narrow, behind), *[(narrow, wide, behind)] * NARROW, (behind,)]
    threads = [threading.Thread(target=lane, args=queues, daemon=True) for queues in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[stage.name] for stage in stages]


if __name__ == "__main__":
    sys.exit(main())
