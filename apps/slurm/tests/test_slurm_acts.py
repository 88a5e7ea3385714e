"""Several acts in one command: host.sh for real in bash, with its directories moved."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps.host import Answer, Claim, Host, parse, preamble
from gpuaas_sdk.host_steps.journal import Journal
from gpuaas_sdk.host_steps.reporter import Reporter
from gpuaas_sdk.host_steps.runner import Runner, stage_title
from gpuaas_sdk.host_steps.step import Step, Task, acts, in_one_go
from gpuaas_slurm.profile import PROFILE

from apps.slurm.tests.support.two_steps import Folder

CLAIM = Claim("inst_00000001", "op_00000001", 1)
SECRET = b"\x00\x01key\n\xff"


def step(root: Path, name: str, act: str = "", **words: object) -> Step:
    done = f"echo x >>{root}/{name}"
    return Step(name, f"Doing {name}", "preparing", f"test -e {root}/{name}", act or done, within=1, **words)  # type: ignore[arg-type]


def run(root: Path, *turns: Sequence[Step], inputs: dict[str, bytes] | None = None, ask: bool = False) -> Answer:
    given = inputs or {}
    text = preamble(PROFILE, CLAIM, step="files", unit="", within=1) + acts(turns, given, ask=ask)
    text = text.replace("BASE=/var/lib/gpuaas-slurm", f"BASE={root}/lib").replace(
        "RUN=/run/gpuaas-slurm", f"RUN={root}/run"
    )
    argv, data = ["bash", "-c", text], b"".join(given.values())
    done = subprocess.run(argv, input=data, capture_output=True, timeout=30, check=False)
    return parse(done.returncode, done.stdout.decode(), done.stderr.decode())


def steps_written(root: Path) -> list[str]:
    return [line.split('"step":"')[1].split('"')[0] for line in (root / "lib/journal.jsonl").read_text().splitlines()]


def test_acts_go_in_turns_and_each_says_its_own(tmp_path: Path) -> None:
    slow = step(tmp_path, "slow", f"sleep 0.3; echo late; touch {tmp_path}/slow")
    quick = step(tmp_path, "quick", f"[ ! -e {tmp_path}/slow ]; say saw nothing; touch {tmp_path}/quick")
    last = step(tmp_path, "last", f"[ -e {tmp_path}/slow ] && touch {tmp_path}/last")
    answer = run(tmp_path, [slow, quick], [last])
    assert (answer.exit, list(answer.parts)) == (0, ["slow", "quick", "last"]), answer
    assert answer.parts["slow"].text == "late"
    assert (answer.parts["slow"].ms or 0) >= 300
    assert answer.parts["quick"].lines == {"saw": ["nothing"]}
    assert sorted(steps_written(tmp_path)) == ["last", "quick", "slow"]


def test_after_a_failure_nothing_more_is_begun_and_the_failure_is_its_own(tmp_path: Path) -> None:
    good, bad = step(tmp_path, "good"), step(tmp_path, "bad", "echo broken; exit 3")
    answer = run(tmp_path, [good], [bad], [step(tmp_path, "never")])
    assert answer.exit == 1
    assert {name: part.exit for name, part in answer.parts.items()} == {"good": 0, "bad": 1}
    assert "broken" in answer.parts["bad"].text
    assert steps_written(tmp_path) == ["good", "bad"]


def test_an_act_that_does_not_hold_is_a_failure(tmp_path: Path) -> None:
    answer = run(tmp_path, [step(tmp_path, "idle", "true")])
    assert answer.parts["idle"].lines["unverified"] == ["idle"]


def test_what_holds_already_is_left_alone_if_the_host_is_to_ask(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    answer = run(tmp_path, [step(tmp_path, "one")], [step(tmp_path, "two")], ask=True)
    assert ["held" in part.lines for part in answer.parts.values()] == [True, False]
    assert steps_written(tmp_path) == ["two"]
    assert (tmp_path / "one").read_text() == ""


def test_each_act_gets_its_own_input_and_none_of_it_stays(tmp_path: Path) -> None:
    names = ("files", "key")
    wanted = [step(tmp_path, name, f"cat >{tmp_path}/{name}") for name in names]
    answer = run(tmp_path, wanted, inputs={"files": b"a" * 200_000, "key": SECRET})
    assert answer.exit == 0, answer
    assert (tmp_path / "files").read_bytes() == b"a" * 200_000
    assert (tmp_path / "key").read_bytes() == SECRET
    assert not list((tmp_path / "run").glob("*.out*"))


@pytest.mark.parametrize(
    ("output", "off"),
    [
        ("inactive failed", True),
        ("unknown inactive", True),
        ("inactive activating", False),
        ("deactivating failed", False),
        ("active inactive", False),
        ("", False),
    ],
)
def test_a_service_that_a_killed_command_was_just_starting_is_not_off(output: str, off: bool) -> None:
    systemctl = f"systemctl() {{ printf '%s\\n' {output}; }}\n" if output else "systemctl() { return 1; }\n"
    argv = ["bash", "-c", preamble(PROFILE, CLAIM, step="look", unit="", within=1) + systemctl + "off mariadb munge"]
    assert (subprocess.run(argv, timeout=30, check=False).returncode == 0) is off


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(Folder(tmp_path / "host"), CLAIM, "alloc_00000001", "gpu1", "10.0.0.1", PROFILE)


async def test_intent_is_written_for_all_and_what_was_not_begun_leaves_no_row(tmp_path: Path, host: Host) -> None:
    async def send(*_: object) -> None: ...

    journal = Journal(tmp_path / "journal.db")
    good, never, bad = step(tmp_path, "good"), step(tmp_path, "never"), step(tmp_path, "bad", "exit 1")
    stage = in_one_go((Task(host, good),), (Task(host, bad),), (Task(host, never),))
    with pytest.raises(Exception, match="Doing bad"):
        async with Reporter(send) as reporter:
            await Runner(journal, reporter).run([stage])
    assert [f"{row['step']} {row['phase']}" for row in journal.rows(CLAIM.operation_id)] == [
        "good verified",
        "bad failed",
    ]


async def test_a_second_run_finds_everything_done_and_acts_nothing(tmp_path: Path, host: Host) -> None:
    async def send(*_: object) -> None: ...

    journal = Journal(tmp_path / "journal.db")
    stage = in_one_go(*((Task(host, step(tmp_path, name)),) for name in ("one", "two")))
    acted = []
    for _ in range(2):
        async with Reporter(send) as reporter:
            runner = Runner(journal, reporter, surveyed=False)
            assert await runner.run([stage])
        acted.append([row["acted"] for row in runner.timeline])
    assert acted == [[True, True], [False, False]]
    assert [row["phase"] for row in journal.rows(CLAIM.operation_id)] == ["verified", "verified", "probed", "probed"]


def test_people_are_told_from_where_to_where_a_stage_goes(tmp_path: Path, host: Host) -> None:
    one, two = Task(host, step(tmp_path, "one")), Task(host, step(tmp_path, "two"))
    assert stage_title((one,)) == "Doing one"
    assert stage_title(in_one_go((one,), (two,))) == "Doing one … doing two"
