"""`make test`: every check, each with its time; a skipped test counts as a failure.

Stages are a table. They start in its order, side by side where both fit on two cores: of those that need one, the long
ones come first, so that no core is idle before those that need both. What a stage printed is shown when it ends. `--fast` leaves out what boots real hosts or another database.
`--only WORD` (make test ONLY=claims) runs the stages with WORD in their name, or else the tests with it in their path or name.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CORES = 2  # a bigger machine helps by its speed, a smaller one waits longer
ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SOURCES = ["core", "sdk", "agent", "cli", "lab", "apps/slurm", "tests", "bench", "tools"]

# These make labs of their own.
MAKE_UP, OWN_MACHINE = "tests/lab/test_make_up.py", "tests/lab/test_own_machine.py"
LAB_JOURNEYS = ["tests/lab", "tests/browser/test_lab_journey.py", "tests/browser/test_lab_trouble.py"]
BROWSER = "tests/browser"
SCHEMATHESIS = "core/tests/properties/test_schemathesis.py"
ON_POSTGRESQL: dict[str, Any] = {"fast": False, "GPUAAS_TEST_DATABASE": "postgresql"}
MATTERS_ON_POSTGRESQL = "not sqlite_only and not any_store"
BY_FILE = ["--dist", "loadfile", "--no-loadscope-reorder"]  # in the order that tests/conftest.py gives them


@dataclass(frozen=True)
class Stage:
    name: str
    argv: list[str]
    tests: bool = False
    lab: bool = False
    minutes: int = 15
    cores: int = 1  # of the two it is meant for
    env: tuple[tuple[str, str], ...] = ()
    fast: bool = True


def _tests(
    name: str,
    *words: str,
    lab: bool = False,
    marks: str = "",
    fast: bool = True,
    minutes: int = 15,
    cores: int = 1,
    **env: str,
) -> Stage:
    marked = " and ".join(part for part in ("lab" if lab else "not lab", marks) if part)
    argv = [str(BIN / "python"), "-m", "pytest", "-q", "-m", marked, *words]
    return Stage(name, argv, True, lab, minutes, cores, tuple(env.items()), fast and not lab)


def _both(name: str, *words: str, minutes: int = 15, **more: Any) -> Stage:
    """Tests that keep both cores busy by themselves. Each worker starts with half of the list, so that a file's fixtures
    are mostly created once; a worker that is done takes tests from the other."""
    return _tests(name, "-n", "2", "--dist", "worksteal", *words, minutes=minutes, cores=2, **more)


def _without(*paths: str) -> list[str]:
    return [f"--ignore={path}" for path in paths]


STAGES = [
    Stage("format", [str(BIN / "ruff"), "format", "--check", "-q", *SOURCES]),
    Stage("lint", [str(BIN / "ruff"), "check", "-q", *SOURCES]),
    Stage("house report", [str(BIN / "python"), "tools/house_report.py"]),
    Stage("import contracts", [str(BIN / "lint-imports"), "--no-cache"]),
    Stage("contracts are fresh", [str(BIN / "gpuaas-core"), "contracts", "contracts", "--check"]),
    Stage("SDK models are fresh", [str(BIN / "python"), "-m", "gpuaas_sdk.generate", "--check"]),
    _tests("the house", "tests/boundary"),
    _tests("browser", BROWSER, fast=False),
    _tests("schemathesis", SCHEMATHESIS, fast=False),
    _tests("schemathesis on PostgreSQL", SCHEMATHESIS, **ON_POSTGRESQL),
    _tests("lab: make up", MAKE_UP, lab=True),
    _tests("cli", "cli/tests"),
    _tests("lab: Slurm app", "apps/slurm/tests", lab=True),
    _tests("sdk", "sdk/tests"),
    Stage("types", [str(BIN / "pyright"), "--level", "error"]),
    _tests("lab: own machine", OWN_MACHINE, lab=True),
    _tests("lab: hosts", "lab/tests", lab=True),
    Stage("console: lint, types, logic", ["npm", "--silent", "--prefix", "console", "run", "check"]),
    *[_tests(package, f"{package}/tests") for package in ("agent", "apps/slurm", "lab")],
    _tests("lab: agent", "agent/tests", lab=True),
    _both("core", "core/tests", *_without(SCHEMATHESIS), marks="not slow", minutes=30),
    _both(
        "core on PostgreSQL",
        "core/tests",
        *_without(SCHEMATHESIS),
        marks=f"not slow and {MATTERS_ON_POSTGRESQL}",
        minutes=30,
        **ON_POSTGRESQL,
    ),
    _both("crashes and races", "core/tests/crash", marks="slow", fast=False),
    _both(
        "crashes and races on PostgreSQL",
        "core/tests/crash",
        marks=f"slow and {MATTERS_ON_POSTGRESQL}",
        **ON_POSTGRESQL,
    ),
    _both("lab: journeys", *LAB_JOURNEYS, *BY_FILE, *_without(MAKE_UP, OWN_MACHINE), lab=True, minutes=25),
]


@dataclass
class Outcome:
    stage: Stage
    ok: bool
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    none_found: bool = False


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--fast", action="store_true")
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    os.chdir(ROOT)
    stages = [s for s in _chosen(chosen.only) if s.fast or not chosen.fast]
    started = time.monotonic()
    return summary(run_all(stages), time.monotonic() - started)


def _chosen(word: str) -> list[Stage]:
    """The stages with this word in their name; if there are none, the tests with it in their path or name."""
    named = [stage for stage in STAGES if word in stage.name]
    if named:
        return named
    return [replace(stage, argv=[*stage.argv, "-k", word]) for stage in STAGES if stage.tests]


class Room:
    """The cores nobody uses. Whoever needs more waits; what a stage says is said in one piece."""

    def __init__(self) -> None:
        self.free, self.changed = CORES, threading.Condition()

    def enter(self, cores: int) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.free >= cores)
            self.free -= cores

    def leave(self, cores: int, words: str) -> None:
        with self.changed:
            print(words, flush=True)
            self.free += cores
            self.changed.notify()


def run_all(stages: list[Stage]) -> list[Outcome]:
    """In the table's order; one waits until there is room for it."""
    room, outcomes, threads = Room(), dict[str, Outcome](), list[threading.Thread]()

    def one(stage: Stage) -> None:
        outcome, text = run(stage)
        outcomes[stage.name] = outcome
        end = f"   {'ok' if outcome.ok else 'FAILED'} in {outcome.seconds:.1f} s"
        room.leave(stage.cores, f"\n━━ {stage.name}\n{text}{end}")

    for stage in stages:
        room.enter(stage.cores)
        threads.append(threading.Thread(target=one, args=(stage,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return [outcomes[stage.name] for stage in stages]


def run(stage: Stage) -> tuple[Outcome, str]:
    """How it ended, and what it printed."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, printed = Path(folder) / "report.xml", Path(folder) / "printed"
        argv = [*stage.argv, f"--junitxml={report}"] if stage.tests else stage.argv
        env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120"} | dict(stage.env)
        late = ""
        with printed.open("wb") as out:
            try:
                code = subprocess.run(
                    argv,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    timeout=stage.minutes * 60,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code, late = 1, f"   took longer than {stage.minutes} minutes\n"
        outcome = Outcome(stage, code == 0, time.monotonic() - started)
        if stage.tests:
            _count(outcome, report, code)
        if outcome.skipped:
            late += f"   {outcome.skipped} skipped: a test that does not run proves nothing\n"
        return outcome, printed.read_text(errors="replace") + late


def _count(outcome: Outcome, report: Path, code: int) -> None:
    if code == 5:  # pytest found nothing with this mark here: said in the summary, not an error
        outcome.ok, outcome.none_found = True, True
        return
    if not report.exists():
        outcome.ok, outcome.failed = False, 1
        return
    suites = ET.parse(report).getroot().iter("testsuite")
    for suite in suites:
        total, bad = int(suite.get("tests", 0)), int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        outcome.skipped += int(suite.get("skipped", 0))
        outcome.failed += bad
        outcome.passed += total - bad - int(suite.get("skipped", 0))
    outcome.ok = outcome.ok and not outcome.skipped


def summary(outcomes: list[Outcome], seconds: float) -> int:
    print("\n━━ summary")
    for one in outcomes:
        count = f"{one.passed} tests" if one.stage.tests else ""
        if one.none_found:
            count = "no tests of this kind"
        print(f"   {'ok    ' if one.ok else 'FAILED'} {one.seconds:7.1f} s  {one.stage.name:32} {count}")
    passed = sum(o.passed for o in outcomes) + sum(o.ok for o in outcomes if not o.stage.tests)
    failed = sum(max(o.failed, 1) for o in outcomes if not o.ok)
    skipped = sum(o.skipped for o in outcomes)
    print(f"   {seconds / 60:.1f} minutes in all")
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
