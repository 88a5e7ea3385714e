"""A stage of `make test` or a part of `make soak`: what it runs, how it ended, what it cost.

Each has two times: how long it took, and the CPU seconds of all its processes. Far apart, it waited: for a lease, a poll,
a host that boots, or for a core that another stage used.
"""

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from tests import stage_process

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
LONGEST = 75  # minutes: only a stage that hangs takes longer, also on a machine with other work


@dataclass(frozen=True)
class Stage:
    name: str
    argv: list[str]
    tests: bool = False
    lab: bool = False
    minutes: int = LONGEST
    wide: bool = False  # two workers
    env: tuple[tuple[str, str], ...] = ()
    fast: bool = True
    behind: bool = False  # uses what the other stages leave of the cores


@dataclass
class Outcome:
    stage: Stage
    ok: bool
    seconds: float
    cpu: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    none_found: bool = False


def stage_of(
    name: str,
    *words: str,
    lab: bool = False,
    marks: str = "",
    fast: bool = True,
    minutes: int = LONGEST,
    wide: bool = False,
    behind: bool = False,
    **env: str,
) -> Stage:
    """Of tests: pytest with these words; `lab` takes those that boot hosts, and only those."""
    marked = " and ".join(part for part in ("lab" if lab else "not lab", marks) if part)
    argv = [str(BIN / "python"), "-m", "pytest", "-q", "-m", marked, *words]
    return Stage(name, argv, True, lab, minutes, wide, tuple(env.items()), fast and not lab, behind)


def run(stage: Stage) -> tuple[Outcome, str]:
    """How it ended, and what it printed."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report, printed, used = (Path(folder) / name for name in ("report.xml", "printed", "used"))
        words = [*stage.argv, f"--junitxml={report}"] if stage.tests else stage.argv
        how = "--behind" if stage.behind else "--beside"
        argv = [sys.executable, stage_process.__file__, str(stage.minutes * 60), str(used), how, *words]
        env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120"} | dict(stage.env)
        with printed.open("wb") as out:
            code = subprocess.run(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            ).returncode
        outcome = Outcome(stage, code == 0, time.monotonic() - started)
        outcome.cpu = float(used.read_text()) if used.exists() else 0.0
        if stage.tests:
            _count(outcome, report, code)
        text = printed.read_text(errors="replace")
        if code == stage_process.LATE:
            text += f"   took longer than {stage.minutes} minutes\n"
        if outcome.skipped:
            text += f"   {outcome.skipped} skipped: a test that does not run proves nothing\n"
        return outcome, text


def _count(outcome: Outcome, report: Path, code: int) -> None:
    if code == 5:  # pytest found nothing with this mark here: stated in the summary, not an error
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


def stage_report(outcome: Outcome, text: str) -> str:
    end = f"   {'ok' if outcome.ok else 'FAILED'} in {outcome.seconds:.1f} s, {outcome.cpu:.1f} s of CPU"
    return f"\n━━ {outcome.stage.name}\n{text}{end}"


def summary(outcomes: list[Outcome], seconds: float, cores: int) -> int:
    print(f"\n━━ summary\n{'':9}    time       CPU")
    for one in outcomes:
        count = f"{one.passed} tests" if one.stage.tests else ""
        if one.none_found:
            count = "no tests of this kind"
        times = f"{one.seconds:7.1f} s {one.cpu:7.1f} s"
        print(f"   {'ok    ' if one.ok else 'FAILED'} {times}  {one.stage.name:32} {count}")
    passed = sum(o.passed for o in outcomes) + sum(o.ok for o in outcomes if not o.stage.tests)
    failed = sum(max(o.failed, 1) for o in outcomes if not o.ok)
    skipped = sum(o.skipped for o in outcomes)
    used = sum(o.cpu for o in outcomes)
    busy = used / (seconds * cores) if seconds else 0
    print(
        f"   {seconds / 60:.1f} minutes in all; {used / 60:.1f} minutes of CPU: {cores} cores were busy {busy:.0%} of it"
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0
