"""Ten thousand tasks that are not quite right: nothing that the platform did not sign for this host is ever begun."""

import base64
import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from gpuaas_agent.tasks import document, schema
from gpuaas_agent.tasks.document import DOCUMENT, KINDS, Known
from gpuaas_agent.tasks.follow import Tasks

from agent.tests.support.fake_core import FILE, NODE, SAMPLES, UNIT, Desk, Host

CONTRACT = Path(__file__).parents[2] / "contracts/node-tasks.json"
MUTATIONS = 10_000
PATHS = [
    "/etc/passwd",
    "/etc/shadow",
    "/opt/gpuaas",
    "/opt/gpuaas/../../etc/cron.d/x",
    "/opt/gpuaas/a/../../../etc/x",
    "/opt/gpuaas//x",
    "/opt/gpuaas/./x",
    "/opt/gpuaas/x\n",
    "/opt/gpuaas/x\0",
    "/opt/gpuaas/\u202ex",
    "/opt/gpuaas-agent/gpuaas_agent/loop.py",
    "/var/lib/gpuaas-agent/key.pem",
    "/etc/gpuaas/agent.json",
    "/etc/ssh/sshd_config",
    "/root/.ssh/authorized_keys",
    "/etc/systemd/system/gpuaas-agent.service",
    "/etc/systemd/system/ssh.service",
    "opt/gpuaas/x",
    "",
]
UNITS = [
    "ssh.service",
    "gpuaas-agent.service",
    "gpuaas-x",
    "gpuaas-x.service;id",
    "-gpuaas-x.service",
    "gpuaas-x.mount",
    "gpuaas-../x.service",
]
JUNK: list[Any] = [None, True, False, -1, 0, 2**60, 1.5, "", "x", [], {}, ["x"], {"x": 1}, "\0", "$(id)", "a" * 5000]


class Recorder:
    """Stands where the acts stand: what gets here would have been done."""

    def __init__(self) -> None:
        self.began: list[tuple[str, Any]] = []
        self.acts = {kind: self._act for kind in KINDS}

    def _act(self, work: Any) -> dict[str, Any]:
        self.began.append((work.task.kind, work.arguments))
        return {}


def test_the_agents_table_of_kinds_is_the_published_one() -> None:
    own = Path(schema.__file__).with_name("kinds.json").read_text()
    assert own == CONTRACT.read_text(), "copy contracts/node-tasks.json to agent/src/gpuaas_agent/tasks/kinds.json"


def test_the_agents_checker_knows_every_word_of_the_table() -> None:
    for kind, sample in SAMPLES.items():
        schema.check(KINDS[kind]["arguments"], sample)
    with pytest.raises(schema.Misfit, match="does not know"):
        schema.check({"type": "string", "format": "email"}, "x")


def _task(dice: random.Random) -> dict[str, Any]:
    kind = dice.choice(list(SAMPLES))
    said = {"task_id": "task_1", "node_id": NODE, "allocation_id": "alloc_1", "operation_id": "op_1", "epoch": 3}
    return said | {
        "attempt": 2,
        "kind": kind,
        "arguments": copy.deepcopy(SAMPLES[kind]),
        "not_before": 0,
        "expires_at": 2**40,
    }


def _flip_bits(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    part = dice.choice(["payload", "signature", "key_id"])
    text = bytearray(envelope[part].encode())
    for _ in range(dice.randint(1, 3)):
        text[dice.randrange(len(text))] ^= 1 << dice.randrange(8)
    envelope[part] = text.decode(errors="replace")


def _resign(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    envelope.update(desk.sign(said, desk.stranger))


def _field(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    """Signed by the platform itself, but for another host, another time, a former claim, or not as published."""
    wrong = {
        "node_id": ["node_2", "", None, "NODE_1"],
        "epoch": [2, 1, 0, -1, "3", True],
        "attempt": [1, 0, "2", -1],
        "expires_at": [0, 1, 2**60],
        "not_before": [2**40],
        "kind": ["shell", "", None, "write_file ", "WIPE", ["wipe"], "__class__"],
        "allocation_id": ["alloc_9", "../alloc_1", 7],
        "arguments": JUNK[:-1],
    }
    name = dice.choice(list(wrong))
    changed = said | {name: dice.choice(wrong[name])}
    if changed["kind"] == "wipe" and changed["arguments"] == {} and name in ("arguments", "allocation_id"):
        changed["node_id"] = "node_2"
    envelope.update(desk.sign(changed))


def _argument(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    arguments = said["arguments"]
    names = list(arguments) or ["command"]
    name = dice.choice(names)
    tricks: dict[str, list[Any]] = {"path": PATHS, "unit": UNITS, "files": [[path] for path in PATHS]}
    tricks["content"] = [None, 7, [], {}, True, "a" * 70_000]  # any other text is a valid file
    arguments[name] = dice.choice(tricks.get(name, [None, -1, [], {}, True, "\n", "\0", "../x", "a" * 70_000]))
    envelope.update(desk.sign(said))


def _extra(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    place = dice.choice([said, said["arguments"]])
    place[dice.choice(["command", "shell", "env", "user", "x"])] = dice.choice(JUNK)
    envelope.update(desk.sign(said))


def _missing(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    del said[dice.choice(list(said))]
    envelope.update(desk.sign(said))


def _not_json(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    text = json.dumps(said)
    broken = [text[: dice.randrange(len(text))], f"[{text}]", "null", text[:-1] + ', "kind": "wipe"}', "[" * 5000]
    payload = dice.choice(broken)
    signature = desk.key.sign(b"gpuaas-node-task/1\n" + payload.encode())
    envelope.update(payload=payload, signature=base64.b64encode(signature).decode())


def _other_purpose(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    signature = desk.key.sign(dice.choice([b"", b"audit-checkpoint\n"]) + envelope["payload"].encode())
    envelope["signature"] = base64.b64encode(signature).decode()


def _envelope(dice: random.Random, desk: Desk, said: dict[str, Any], envelope: dict[str, Any]) -> None:
    envelope[dice.choice(["payload", "signature", "key_id", "more"])] = dice.choice(JUNK)


MUTATORS = [_flip_bits, _resign, _field, _argument, _extra, _missing, _not_json, _other_purpose, _envelope]


def test_another_spelling_of_the_same_signature_is_refused() -> None:
    desk = Desk()
    envelope = desk.sign(_task(random.Random(1)))
    last = envelope["signature"][-3]  # its two lowest bits carry nothing in 64 bytes
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    envelope["signature"] = envelope["signature"][:-3] + alphabet[alphabet.index(last) ^ 1] + "=="
    with pytest.raises(document.TaskRefused, match="signature"):
        document.read(envelope, Known.of(desk.trust()), NODE, 1000)


def test_of_ten_thousand_mutated_tasks_none_is_begun_and_each_good_one_is(tmp_path: Path) -> None:
    """Real verification, real memory, real refusals; only the acts are replaced, by one that tells on itself."""
    dice, desk, recorder = random.Random(20261116), Desk(), Recorder()
    host = Host(tmp_path, desk)
    tasks, known = Tasks(host.places, desk, NODE, recorder.acts), Known.of(desk.trust())
    tasks.memory.epochs = {"alloc_1": {"op_1": 3}}
    tasks.memory.done = {"task_1": [1, 2**41]}
    tasks.memory._save = lambda: None  # type: ignore[method-assign] - a disk is not what is tried here
    tasks.spool.put = lambda *_: None  # type: ignore[method-assign]
    tasks.journal._save = tasks.journal.close = lambda: None  # type: ignore[method-assign]
    desk.tasks["task_1"] = {"state": "leased", "attempt": 2, "results": [], "renewals": 0}
    good = wrong = 0
    for number in range(MUTATIONS + MUTATIONS // 100):
        said = _task(dice)
        envelope = desk.sign(said)
        if number % 101 == 100:  # so that "nothing was begun" cannot be because nothing ever is
            good += 1
            kept = said
        else:
            kept, before = None, (dict(envelope), copy.deepcopy(said))
            while dict(envelope) == before[0]:
                envelope, said = dict(before[0]), copy.deepcopy(before[1])
                dice.choice(MUTATORS)(dice, desk, said, envelope)
            wrong += 1
        desk.tasks["task_1"]["state"] = "leased"
        tasks.memory.done = {"task_1": [1, 2**41]}
        tasks.memory.closed = []
        began = len(recorder.began)
        tasks.take({"task_id": "task_1", "attempt": 2, "epoch": 3, "document": envelope}, known)
        assert len(recorder.began) == began + (kept is not None), f"{number}: {envelope}"
    assert (good, wrong) == (100, MUTATIONS)
    assert len(recorder.began) == good
    assert host.all_files() == {str(tmp_path / "systemctl")}


@pytest.mark.parametrize("path", PATHS)
def test_every_path_trick_is_refused_by_schema_even_when_signed(tmp_path: Path, path: str) -> None:
    desk = Desk()
    host, task = Host(tmp_path, desk), desk.ask("write_file", FILE | {"path": path})
    before = host.all_files()
    host.round()
    assert desk.tasks[task]["state"] == "refused"
    assert host.all_files() == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"node_id": "node_2"}, "another node"),
        ({"allocation_id": "alloc_9"}, "does not hold this node"),
        ({"expires_at": 1}, "expired or is not valid yet"),
        ({"not_before": 2**40}, "expired or is not valid yet"),
        ({"kind": "shell"}, "published kinds"),
        ({"arguments": {}}, "published kinds"),
        ({"more": 1}, "published kinds"),
    ],
)
def test_a_refusal_says_why_and_reaches_the_platform(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    desk = Desk()
    host, task = Host(tmp_path, desk), desk.ask("write_file", FILE, **change)
    host.round()
    assert desk.tasks[task]["state"] == "refused"
    assert why in desk.tasks[task]["results"][0]["message"]
    assert desk.tasks[task]["renewals"] == 0, "work begins with a renewal; a refused task must not get so far"


def test_what_was_done_is_not_done_again_for_any_sender(tmp_path: Path) -> None:
    desk = Desk()
    host, task = Host(tmp_path, desk), desk.ask("run_unit", UNIT)
    leased = desk.leased(task)
    known = Known.of(desk.trust())
    Tasks(host.places, desk, NODE).take(leased, known)
    ran = host.ran
    Tasks(host.places, desk, NODE).take(leased, known)
    assert host.ran == ran
    (again,) = [path.read_text() for path in Tasks(host.places, desk, NODE).spool.waiting()]
    assert "done already" in again


def test_a_former_claim_cannot_touch_the_host_after_a_takeover_even_after_a_reboot(tmp_path: Path) -> None:
    desk = Desk()
    host = Host(tmp_path, desk)
    newer, older = desk.ask("write_file", FILE, epoch=5), desk.ask("write_file", FILE | {"content": "old"}, epoch=4)
    host.round()
    host.round()
    assert (desk.tasks[newer]["state"], desk.tasks[older]["state"]) == ("succeeded", "refused")
    assert host.at(FILE["path"]).read_text() == FILE["content"]
    other = desk.ask("write_file", FILE, epoch=1, operation_id="op_2")
    host.round()
    assert desk.tasks[other]["state"] == "succeeded", "the claims of each operation are counted from one"


def test_a_link_on_the_way_or_at_the_end_is_not_followed(tmp_path: Path) -> None:
    desk = Desk()
    host = Host(tmp_path, desk)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target").write_text("mine")
    host.at("/opt/gpuaas").mkdir(parents=True)
    host.at("/opt/gpuaas/first").symlink_to(outside)
    on_the_way = desk.ask("write_file", FILE)
    host.round()
    assert desk.tasks[on_the_way]["state"] == "failed"
    assert sorted(path.name for path in outside.iterdir()) == ["target"]
    host.at("/opt/gpuaas/first").unlink()
    host.at("/opt/gpuaas/first").mkdir()
    host.at(FILE["path"]).symlink_to(outside / "target")
    at_the_end = desk.ask("write_file", FILE)
    host.round()
    assert desk.tasks[at_the_end]["state"] == "succeeded"
    assert (outside / "target").read_text() == "mine"
    assert not host.at(FILE["path"]).is_symlink()
    digest = desk.ask("collect_evidence", {"what": ["files"], "files": ["/opt/gpuaas/first/link"]})
    host.at("/opt/gpuaas/first/link").symlink_to(outside / "target")
    host.round()
    assert "cannot" in desk.tasks[digest]["results"][0]["evidence"]["files"]["/opt/gpuaas/first/link"]


def test_without_the_platforms_keys_it_does_not_even_ask(tmp_path: Path) -> None:
    desk = Desk()
    host = Host(tmp_path, desk)
    host.places.trust.write_text("{}")
    host.round()
    assert desk.calls == []
    assert "properties" in DOCUMENT
