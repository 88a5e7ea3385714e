"""Tasks on a host: what each kind does, leases, results that must not be lost, and a process that dies anywhere."""

import hashlib
import io
import json
import multiprocessing
import os
import signal
import stat
import tarfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from gpuaas_agent import files, upgrade
from gpuaas_agent.api import Api
from gpuaas_agent.errors import Refused, Unreachable
from gpuaas_agent.tasks import follow, lease
from gpuaas_agent.tasks.acts import upgrade_agent, wipe
from gpuaas_agent.tasks.document import KINDS
from gpuaas_agent.tasks.errors import TaskFailed
from gpuaas_agent.tasks.inbox import Inbox

from agent.tests.support.fake_core import FILE, NODE, UNIT, UNREACHABLE, Desk, Host
from agent.tests.support.waits import soon


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def host(tmp_path: Path, desk: Desk) -> Host:
    return Host(tmp_path, desk)


def done(host: Host, kind: str, arguments: Any, **more: Any) -> dict[str, Any]:
    task = host.desk.ask(kind, arguments, **more)
    host.round()
    (result,) = host.desk.tasks[task]["results"]
    return result


def test_a_file_arrives_whole_with_mode_and_digest(host: Host) -> None:
    result = done(host, "write_file", FILE)
    path = host.at(FILE["path"])
    assert (result["outcome"], path.read_text()) == ("succeeded", FILE["content"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert result["evidence"]["sha256"] == hashlib.sha256(FILE["content"].encode()).hexdigest()
    assert [one.name for one in path.parent.iterdir()] == ["run.conf"], "something half-written was left"


def test_an_owner_the_host_does_not_have_fails_with_a_sentence(host: Host) -> None:
    result = done(host, "write_file", FILE | {"owner": "no-such-user"})
    assert result["outcome"] == "failed"
    assert "No such user" in result["message"]
    assert not host.at(FILE["path"]).exists()


def test_a_unit_is_asked_for_by_name_and_its_state_is_told(host: Host) -> None:
    result = done(host, "run_unit", UNIT)
    assert result["outcome"] == "succeeded"
    assert host.ran[:2] == ["daemon-reload", "--no-ask-password restart -- gpuaas-first.service"]
    assert result["evidence"]["is"] == {"ActiveState": "inactive"}


def test_evidence_is_what_is_there_and_no_more_than_the_kind_may_say(host: Host, monkeypatch: Any) -> None:
    done(host, "write_file", FILE)
    tcp = host.places.root / "proc/net/tcp"
    tcp.parent.mkdir()
    tcp.write_text("  sl\n   0: 0100007F:1F90 00000000:0000 0A 0\n   1: 0100007F:1F91 00000000:0000 01 0\n")
    asked = {"what": ["disk", "ports", "files", "processes", "units"], "files": [FILE["path"], "/opt/gpuaas/none/x"]}
    seen = done(host, "collect_evidence", asked)["evidence"]
    assert seen["ports"] == [8080]
    assert seen["files"][FILE["path"]]["mode"] == "0640"
    assert seen["files"]["/opt/gpuaas/none/x"] is None
    assert seen["disk"]["/"]["total_mb"] > 0
    monkeypatch.setitem(KINDS["collect_evidence"], "output_limit", 100)
    assert done(host, "collect_evidence", asked)["evidence"]["cut_off"] is True


class _Files(BaseHTTPRequestHandler):
    """Serves `content` of its server, or sends elsewhere."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._send(200, json.dumps({"access_token": "t", "expires_in": 900}).encode())

    def do_GET(self) -> None:
        if self.path.endswith("dlv_elsewhere"):
            self.send_response_only(302)
            self.send_header("Location", "/v1/nodes/node_1/deliveries/dlv_1")
            self.end_headers()
        elif self.path.endswith("dlv_none"):
            self._send(404, b'{"code": "not_found"}')
        else:
            assert self.headers["Authorization"] == "Bearer t"
            self._send(200, self.server.content)  # type: ignore[attr-defined]

    def _send(self, status: int, data: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Signs:
    """An identity that the test's server does not look at."""

    def sign(self, now: float) -> str:
        return f"assertion of {now}"


@pytest.fixture
def served(desk: Desk) -> Any:
    """The desk's deliveries, over real HTTP."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    api = Api(f"http://127.0.0.1:{server.server_port}", who=_Signs())  # type: ignore[arg-type]
    desk.download = api.download  # type: ignore[method-assign]
    yield server
    server.shutdown()
    server.server_close()


def fetch(content: bytes, **more: Any) -> dict[str, Any]:
    said = {"delivery": "dlv_1", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    return said | {"path": "/opt/gpuaas/first/bundle", "mode": "0755"} | more


def test_an_artifact_is_streamed_checked_and_only_then_named(host: Host, served: Any) -> None:
    served.content = os.urandom(3 << 20)
    assert done(host, "fetch_artifact", fetch(served.content))["outcome"] == "succeeded"
    assert host.at("/opt/gpuaas/first/bundle").read_bytes() == served.content


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sha256": "0" * 64}, "another digest"),
        ({"size": 99}, "More than the announced"),
        ({"size": 101}, "another digest"),
        ({"delivery": "dlv_elsewhere"}, "302"),
        ({"delivery": "dlv_none"}, "404"),
    ],
)
def test_an_artifact_that_is_not_what_was_announced_never_lands(
    host: Host, served: Any, change: dict[str, Any], why: str
) -> None:
    served.content = b"x" * 100
    result = done(host, "fetch_artifact", fetch(served.content, **change))
    assert result["outcome"] == "failed"
    assert why in result["message"]
    assert list(host.at("/opt/gpuaas/first").iterdir()) == []


def test_a_fetch_goes_on_when_the_platform_is_back(host: Host, served: Any) -> None:
    served.content = b"bundle"
    task, real = host.desk.ask("fetch_artifact", fetch(b"bundle")), host.desk.download

    def away(path: str) -> Any:
        raise UNREACHABLE

    host.desk.download = away  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        host.round()
    host.desk.download = real  # type: ignore[method-assign]
    host.round()
    assert host.desk.tasks[task]["state"] == "succeeded"


def test_a_wipe_takes_away_what_tasks_left_and_nothing_else(host: Host) -> None:
    done(host, "write_file", FILE)
    done(host, "write_file", FILE | {"path": "/etc/systemd/system/gpuaas-first.service"})
    done(host, "run_unit", UNIT)
    done(host, "write_file", FILE | {"path": "/opt/gpuaas/other/keep"}, allocation_id="alloc_2")
    host.at("/opt/gpuaas/first/made-by-another").write_text("stays")
    result = done(host, "wipe", {}, operation_id=None)
    assert result["outcome"] == "succeeded", result
    assert "disable --now -- gpuaas-first.service" in host.ran
    left = {str(path.relative_to(host.places.root)) for path in map(Path, host.all_files())}
    assert left == {"systemctl", "ran.log", "opt/gpuaas/other/keep", "opt/gpuaas/first/made-by-another"}
    assert done(host, "write_file", FILE)["outcome"] == "refused", "a wiped allocation takes no more tasks"
    assert done(host, "wipe", {}, operation_id=None)["outcome"] == "succeeded", "a wipe can be repeated"
    assert done(host, "write_file", FILE, allocation_id="alloc_2")["outcome"] == "succeeded"


def test_a_wipe_that_could_not_take_everything_away_has_failed_and_names_it(host: Host) -> None:
    done(host, "write_file", FILE)
    host.at(FILE["path"]).unlink()
    host.at(FILE["path"]).mkdir()
    result = done(host, "wipe", {}, operation_id=None)
    assert result["outcome"] == "failed"
    assert FILE["path"] in result["message"]


def test_a_wipe_ends_what_is_below_sshd_but_not_sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    for pid, name, parent in (
        (1, "systemd", 0),
        (7, "sshd", 1),
        (8, "sshd", 7),
        (9, "bash", 8),
        (10, "slurmd", 1),
        (11, "miner", 1),
    ):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "comm").write_text(name)
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 0")
        scope = "session-3.scope" if name == "miner" else "system.slice"
        (folder / "cgroup").write_text(f"0::/user.slice/{scope}\n")
    for number, service in ((3, "sshd"), (4, "login")):
        session = tmp_path / f"run/systemd/sessions/{number}"
        session.parent.mkdir(parents=True, exist_ok=True)
        session.write_text(f"UID=0\nSTATE=closing\nSERVICE={service}\nSCOPE=session-{number}.scope\n")
    assert wipe.end_sessions(tmp_path) == 3
    assert sorted(killed) == [8, 9, 11], "also the one that outlived its login"


def package(version: str) -> bytes:
    content = {"gpuaas_agent/__init__.py": f'__version__ = "{version}"\n', "gpuaas_agent/__main__.py": "pass\n"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def upgraded(host: Host, data: bytes, version: str, **changed: Any) -> dict[str, Any]:
    host.desk.deliveries[version] = [data[:1000], data[1000:]]
    said = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "version": version} | changed
    return done(host, "upgrade_agent", said, allocation_id=None, operation_id=None)


@pytest.fixture
def installed(host: Host, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(upgrade_agent, "STARTS_WITHIN_S", 0)
    (host.places.releases / "1.0-old").mkdir(parents=True)
    host.places.current.symlink_to("releases/1.0-old")
    return host


def test_an_upgrade_waits_beside_the_present_version_until_the_agent_is_started_again(installed: Host) -> None:
    data = package("9.9.9")
    assert "did not start" in upgraded(installed, data, "9.9.9")["message"]
    assert "restart --no-block gpuaas-agent.service" in installed.ran
    assert upgrade.running(installed.places) == "1.0-old"
    release = upgrade.release_of("9.9.9", hashlib.sha256(data).hexdigest())
    assert (installed.places.releases / release / "gpuaas_agent/__init__.py").exists()
    installed.places.current.unlink()
    installed.places.current.symlink_to(f"releases/{release}")
    assert upgraded(installed, data, "9.9.9")["outcome"] == "succeeded", "the new version finds itself in place"


def test_an_archive_with_another_digest_is_not_kept(installed: Host) -> None:
    assert "another digest" in upgraded(installed, package("9.9.9"), "9.9.9", sha256="0" * 64)["message"]
    assert "More than the announced" in upgraded(installed, package("9.9.9"), "9.9.9", size=5)["message"]
    assert [path.name for path in installed.places.releases.iterdir()] == ["1.0-old"]


def test_an_agent_that_was_not_installed_with_releases_says_so(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade_agent, "STARTS_WITHIN_S", 0)
    assert "installer" in upgraded(host, package("9.9.9"), "9.9.9")["message"]


def test_a_program_that_hangs_is_killed_with_its_children_and_the_time_is_told(host: Host, monkeypatch: Any) -> None:
    monkeypatch.setitem(KINDS["run_unit"], "time_limit_s", 1)
    script = host.places.root / "systemctl"
    script.write_text(f"#!/bin/sh\nsleep 60 & echo $! >{host.places.root}/child; wait\n")
    began = time.monotonic()
    result = done(host, "run_unit", UNIT)
    assert result["outcome"] == "interrupted"
    assert time.monotonic() - began < 30, "half of what the program would have taken"
    assert result["evidence"]["steps"][-1] == {"step": "daemon-reload", "state": "begun"} | {
        "at": result["evidence"]["steps"][-1]["at"]
    }
    child = int((host.places.root / "child").read_text())
    soon(lambda: not _lives(child), "the child ends with its task")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_program_that_talks_without_end_is_kept_short(host: Host) -> None:
    script = host.places.root / "systemctl"
    script.write_text("#!/bin/sh\nhead -c 30000000 /dev/zero | tr '\\0' x\n")
    result = done(host, "run_unit", UNIT)
    assert len(json.dumps(result["evidence"])) <= KINDS["run_unit"]["output_limit"]


def test_who_came_to_hold_the_host_while_it_waited_for_tasks_is_known(host: Host, desk: Desk) -> None:
    whole, before = desk.trust(), desk.trust() | {"principals": {"root": []}}
    files.write(host.places.trust, json.dumps(before))
    give = desk.give

    def given(inbox: Any) -> None:
        files.write(host.places.trust, json.dumps(whole))
        give(inbox)

    desk.give = given  # type: ignore[method-assign]
    assert done(host, "write_file", FILE)["outcome"] == "succeeded"


def test_nothing_is_done_before_the_first_renewal(host: Host, desk: Desk) -> None:
    task = desk.ask("write_file", FILE)
    desk.fail["renew"] = UNREACHABLE
    with pytest.raises(Unreachable):
        host.round()
    assert not host.at(FILE["path"]).exists()
    desk.fail = {"renew": Refused(409, "stale_task", "Taken back.", "Stop.")}
    desk.tasks[task]["state"] = "canceled"
    host.round()
    assert not host.at(FILE["path"]).exists()
    assert desk.tasks[task]["results"] == []


def test_a_lost_lease_stops_what_may_not_be_repeated_at_the_next_safe_point(
    host: Host, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEW_EVERY_S", 0.05)
    script = host.places.root / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$*" >>{host.log}\nsleep 0.4\n')
    task = desk.ask("run_unit", UNIT)
    real = desk.post

    def post(path: str, body: Any, **more: Any) -> Any:
        if path.endswith("renew") and desk.tasks[task]["renewals"]:
            raise Refused(409, "stale_task", "Taken.", "Stop.")
        return real(path, body, **more)

    desk.post = post  # type: ignore[method-assign]
    host.round()
    assert host.ran == ["daemon-reload"], "it went on to act on the unit without a lease"
    (result,) = desk.tasks[task]["results"]
    assert result["outcome"] == "interrupted"


def test_a_result_waits_on_disk_for_the_platform_and_is_told_until_heard(host: Host, desk: Desk) -> None:
    task = desk.ask("write_file", FILE)
    desk.fail["result"] = UNREACHABLE
    for _ in range(3):
        with pytest.raises(Unreachable):
            host.round()
    desk.fail.clear()
    host.round()
    (result,) = desk.tasks[task]["results"]
    assert result["outcome"] == "succeeded"
    host.round()
    assert len(desk.tasks[task]["results"]) == 1
    assert list((host.places.tasks / "spool").iterdir()) == []


def test_a_result_the_platform_no_longer_wants_does_not_block_the_next(host: Host, desk: Desk) -> None:
    first = desk.ask("write_file", FILE)
    desk.fail["result"] = UNREACHABLE
    with pytest.raises(Unreachable):
        host.round()
    desk.fail.clear()
    desk.tasks[first]["state"] = "expired"
    assert done(host, "write_file", FILE)["outcome"] == "succeeded"


# -- killed


def _dies_at(root: Path, desk: Desk, point: int) -> None:
    """In a process of its own: the n-th time something reaches the disk, a program or the platform, it is killed."""
    reached = 0

    def mortal(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            nonlocal reached
            reached += 1
            if reached == point:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = real(*args, **more)
            reached += 1
            if reached == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return call

    files.write, files.remove = mortal(files.write), mortal(files.remove)
    os.rename, os.mkdir = mortal(os.rename), mortal(os.mkdir)
    follow.Lease.renew = mortal(follow.Lease.renew)  # type: ignore[method-assign]
    from gpuaas_agent.tasks import work

    work.Work.run = mortal(work.Work.run)  # type: ignore[method-assign]
    host = Host(root, desk)
    host.round()
    os._exit(0)


class _Shared(Desk):
    """Keeps its tasks in a file: what the platform knows outlives the host's process."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def give(self, inbox: Inbox) -> None:
        self._kept(lambda: super(_Shared, self).give(inbox))

    def post(self, path: str, body: dict[str, Any], **more: Any) -> Any:
        return self._kept(lambda: super(_Shared, self).post(path, body, **more))

    def _kept(self, act: Callable[[], Any]) -> Any:
        self.tasks = json.loads(self.path.read_text())
        try:
            return act()
        finally:
            self.path.write_text(json.dumps(self.tasks))


@pytest.mark.parametrize(("kind", "arguments"), [("write_file", FILE), ("run_unit", UNIT)])
def test_killed_at_every_step_a_task_ends_once_and_is_repeated_only_if_that_is_harmless(
    tmp_path: Path, kind: str, arguments: Any
) -> None:
    fork = multiprocessing.get_context("fork")
    ends: list[str] = []
    for point in range(1, 200):
        root = tmp_path / str(point)
        root.mkdir()
        desk = _Shared(root / "platform.json")
        task = desk.ask(kind, arguments)
        desk.path.write_text(json.dumps(desk.tasks))
        child = fork.Process(target=_dies_at, args=(root, desk, point))
        child.start()
        child.join(30)
        survived = child.exitcode == 0
        host = Host(root, desk)
        began = json.loads(desk.path.read_text())[task]["state"] == "running"
        host.round()
        host.round()
        state = desk.tasks[task]["state"]
        ends.append(state)
        told = {json.dumps(one) for one in desk.tasks[task]["results"]}
        assert len(told) == 1, f"point {point}: told {told}"  # maybe twice, never two things
        if kind == "write_file":
            assert state == "succeeded", f"point {point}"
            assert host.at(FILE["path"]).read_text() == FILE["content"]
        else:
            assert state in ("succeeded", "interrupted"), f"point {point}"
            assert sum("restart" in line for line in host.ran) <= 1, f"point {point}: done twice"
            if state == "interrupted":
                assert began
                assert "steps" in desk.tasks[task]["results"][0]["evidence"]
        assert not (host.places.tasks / "journal.json").exists()
        if survived:
            break
    else:
        pytest.fail("the task has more steps than were tried")
    assert len(ends) > 15, "too few points: the test kills nothing"
    assert ends.count("interrupted") == 0 if kind == "write_file" else ends.count("interrupted") > 3


def test_a_task_that_fails_by_a_bug_ends_and_does_not_stop_the_agent(host: Host, desk: Desk) -> None:
    def bug(_: Any) -> dict[str, Any]:
        raise KeyError("oops")

    def sad(_: Any) -> dict[str, Any]:
        raise TaskFailed("It did not work.")

    first, second = desk.ask("write_file", FILE), desk.ask("write_file", FILE)
    host.round({"write_file": bug})
    host.round({"write_file": sad})
    assert [desk.tasks[one]["results"][0]["message"] for one in (first, second)] == [
        "KeyError: 'oops'",
        "It did not work.",
    ]
    assert desk.tasks[first]["said"]["node_id"] == NODE
