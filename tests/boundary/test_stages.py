"""The stages of `make test`: what they cost is counted to the last process, a late one ends, each runs once."""

import sys
from pathlib import Path

from tests import everything, soak
from tests.stages import Stage, run

BUSY = "import time\nwhile time.process_time() < 0.2: pass\n"
LEAVES_IT = f"""
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {BUSY.replace(chr(10), chr(10) + " " * 8).strip()}
    os._exit(0)
"""


def _python(text: str, **more: bool) -> Stage:
    return Stage("a stage", [sys.executable, "-c", text], **more)


def test_the_cpu_of_a_process_left_in_the_background_is_counted() -> None:
    outcome, _ = run(_python(LEAVES_IT))
    assert outcome.ok
    assert outcome.cpu > 0.18


def test_a_stage_in_the_background_of_the_others_has_a_lower_priority() -> None:
    _, printed = run(_python("import os; print(os.nice(0))", behind=True))
    _, usual = run(_python("import os; print(os.nice(0))"))
    assert int(printed) == min(int(usual) + 10, 19)


def test_a_failed_stage_and_a_late_one_are_not_ok() -> None:
    assert not run(_python("raise SystemExit(3)"))[0].ok
    outcome, printed = run(Stage("late", [sys.executable, "-c", "import time; time.sleep(120)"], minutes=0))
    assert not outcome.ok
    assert "took longer than 0 minutes" in printed


def test_every_stage_runs_once_beside_the_others_or_behind_them(tmp_path: Path) -> None:
    words = [sys.executable, "-c", f"import os, sys; open({str(tmp_path / 'ran')!r}, 'a').write(sys.argv[1] + ' ')"]
    stages = [Stage(name, [*words, name], wide=name in "cf", behind=name in "beg") for name in "abcdefgh"]
    outcomes = everything.run_all(stages)
    assert [one.stage.name for one in outcomes] == list("abcdefgh")
    assert all(one.ok for one in outcomes)
    assert sorted((tmp_path / "ran").read_text().split()) == list("abcdefgh")


def test_stages_and_parts_have_names_of_their_own() -> None:
    for names in ([stage.name for stage in everything.STAGES], [stage.name for _, stage in soak.PARTS]):
        assert len(names) == len(set(names))
