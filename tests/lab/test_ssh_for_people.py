"""People on real machines, by `gpuaas ssh`: who gets in and as whom, who is refused, and that nothing of them stays."""

import base64
import json
import os
import pty
import re
import secrets
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from gpuaas_lab.canaries import Canaries, process, under
from gpuaas_lab.stack.platform import program
from gpuaas_sdk import Bearer, Client
from gpuaas_sdk.client.models import InstanceView

from tests.lab.test_ssh_refusals import address_of, authority_key
from tests.support.lab_stack import Ground, promised, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.early(15)]

HOST, MEMBER = "gpu1", "controller/0"
ENDS_WITHIN_S = 10
SEED = slice(161, 193)  # of an Ed25519 key in OpenSSH's format: what makes it private
PASSWORD = "correct horse battery"
# Whatever a person could leave: processes, files, mounts, a line about them.
TRACES = r"""
ps -eo uid=,args= | awk '$1 >= 1880000000 && $1 < 2130000000'
find /tmp /var/tmp /dev/shm /run /home /var/spool -uid +1879999999 2>/dev/null
grep -l ' gpuaas tmpfs' /proc/[0-9]*/mounts 2>/dev/null
grep GPUaaS.[0-9] /etc/passwd
true
"""


@dataclass
class Person:
    ground: Ground
    id: str
    token: str
    folder: str = "/tmp"  # where keys are made

    @property
    def env(self) -> dict[str, str]:
        return {"GPUAAS_API": self.ground.stack.api, "GPUAAS_TOKEN": self.token, "TMPDIR": self.folder}

    def ssh(self, *words: str, project: str | None = None) -> subprocess.CompletedProcess[str]:
        place = ("-p", project or self.ground.research)
        return self.ground.cli("ssh", "people", MEMBER, *place, *words, env=self.env, timeout=180)

    def begin(self, *words: str, stdin: int, stdout: int | None = None) -> subprocess.Popen[bytes]:
        argv = [program("gpuaas"), "ssh", "people", MEMBER, "-p", self.ground.research, *words]
        env = self.ground.stack.cli_env | self.env
        return subprocess.Popen(argv, env=env, stdin=stdin, stdout=stdout, stderr=stdout, start_new_session=True)

    def given(self) -> dict[str, Any]:
        """A certificate to play with: the words of ssh, and the folder they name."""
        done = self.ssh("--print", "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def instance(ground: Ground) -> Iterator[InstanceView]:
    made = ground.running("people", HOST)
    yield made
    if ground.instance(made.id).state != "deleted":
        ground.gone(made)


def person(ground: Ground, role: str, project: str) -> Person:
    email = f"{role}-{secrets.token_hex(3)}@demo.example"
    made = ground.demo.boss.create_user(ground.demo.tenant_id, email=email, name=role, password=PASSWORD)
    ground.demo.boss.create_role_binding(ground.demo.tenant_id, principal_id=made.id, role=role, project_id=project)
    with Client(ground.stack.api, Bearer()) as anonymous:
        return Person(ground, made.id, anonymous.sign_in(email, PASSWORD).access_token)


@pytest.fixture(scope="module")
def ops(ground: Ground, instance: InstanceView, tmp_path_factory: pytest.TempPathFactory) -> Person:
    made = person(ground, "project_admin", ground.research)
    return replace(made, folder=str(tmp_path_factory.mktemp("keys")))


def traces(ground: Ground) -> str:
    return ground.on_host(HOST, "sh", "-c", TRACES)


def nothing_stays(ground: Ground) -> None:
    """The last processes of a session end when its client has already heard how it went."""
    wait_until(lambda: traces(ground) == "", 120, "everything of the session to end")


def test_a_person_gets_in_as_anonymous_in_particular_and_asks_the_app(ground: Ground, ops: Person) -> None:
    done = ops.ssh("--", "id -un; hostname; sinfo -h -o %D; touch /tmp/mine; cat /etc/shadow; exit 7")
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["person", HOST, "1"]
    assert "/etc/shadow: Permission denied" in done.stderr
    nothing_stays(ground)
    log = lambda: ground.on_host(HOST, "journalctl", "--no-pager", "-u", "ssh", "-o", "cat")  # noqa: E731
    wait_until(lambda: f"ID {ops.id}/1 (serial" in log(), 60, "the machine's log to say who it was")


def test_who_may_not_is_told_so_and_a_stranger_sees_nothing(ground: Ground, ops: Person) -> None:
    viewer = person(ground, "project_viewer", ground.research)
    refused = viewer.ssh("--", "id")
    assert refused.returncode == 4
    assert "lacks the permission 'apps.access.enter'" in refused.stderr
    assert "What you can do: " in refused.stderr
    stranger = person(ground, "project_admin", ground.demo.projects["training"])
    assert stranger.ssh("--", "id").returncode == 5


def test_a_terminal_is_a_terminal(ground: Ground, ops: Person) -> None:
    ours, theirs = pty.openpty()
    session = ops.begin(stdin=theirs, stdout=theirs)
    os.close(theirs)
    try:
        _type(ours, "echo $((40 + 2)) $(tty | cut -c1-9)\n", "42 /dev/pts/")
        _type(ours, "sleep 4810\n", "sleep 4810")
        wait_until(lambda: "sleep 4810" in traces(ground), 120, "the command to run")
        _type(ours, "\x03", "")
        wait_until(lambda: "sleep 4810" not in traces(ground), 120, "the command to be interrupted")
        _type(ours, "echo code $?\n", "code 130")
        _type(ours, "exit 5\n", "")
        assert session.wait(120) == 5
    finally:
        session.kill()
        os.close(ours)
    nothing_stays(ground)


def _type(terminal: int, words: str, expected: str) -> None:
    os.write(terminal, words.encode())
    seen, deadline = "", time.monotonic() + 120
    while expected not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([terminal], [], [], 1)[0]:
            with suppress(OSError):
                seen += os.read(terminal, 4096).decode(errors="replace")


def _tried(words: list[str], **changed: str) -> subprocess.CompletedProcess[str]:
    """The same words but for these options of ssh, or the address."""
    address = changed.pop("address", None)
    for name, value in changed.items():
        words = [f"{name}={value}" if word.startswith(f"{name}=") else word for word in words]
    if address:
        words = [*words[: words.index("--") + 1], address]
    return subprocess.run(
        [*words, "id"], capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL, check=False
    )


def test_a_certificate_is_for_one_key_one_machine_and_minutes(ground: Ground, ops: Person, tmp_path: Path) -> None:
    given = ops.given()
    words, folder = given["command"], Path(given["folder"])
    good = _tried(words)
    assert "(person)" in good.stdout, good.stderr
    other = {"address": address_of(ground, "gpu2")}
    elsewhere = _tried(words, **other)
    assert "Host key verification failed" in elsewhere.stderr, "another machine at the address was taken for it"
    node = ground.nodes["gpu2"]
    known = tmp_path / "known_hosts"
    known.write_text((folder / "known_hosts").read_text().replace(ground.nodes[HOST], node))
    wrong_host = _tried(words, **other, HostKeyAlias=node, UserKnownHostsFile=str(known))
    assert "Permission denied" in wrong_host.stderr, "it opens another machine of the project"
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True, timeout=60)
    assert "Permission denied" in _tried(words, IdentityFile=str(key)).stderr
    expired = _signed(ground, folder, given, valid_before=int(time.time()) - 1, path=tmp_path / "old-cert.pub")
    assert "Permission denied" in _tried(words, CertificateFile=str(expired)).stderr
    same = _signed(ground, folder, given, valid_before=int(time.time()) + 300, path=tmp_path / "new-cert.pub")
    assert "(person)" in _tried(words, CertificateFile=str(same)).stdout, "the one above was refused for something else"
    nothing_stays(ground)


def _signed(ground: Ground, folder: Path, given: dict[str, Any], *, valid_before: int, path: Path) -> Path:
    principal = f"{ground.allocations[HOST]}.people"
    made = authority_key(ground).generate_user_certificate(
        asyncssh.read_public_key(folder / "key.pub"),
        "usr_of_the_test/1",
        principals=[principal],
        valid_after=int(time.time()) - 600,
        valid_before=valid_before,
        serial=secrets.randbits(62) + 1,
    )
    path.write_bytes(made.export_certificate())
    return path


def test_no_other_door_opens_with_it(ground: Ground, ops: Person) -> None:
    words = ops.given()["command"]
    tunnel = [words[0], "-W", "127.0.0.1:6817", *words[1:]]
    done = subprocess.run(tunnel, capture_output=True, text=True, timeout=180, stdin=subprocess.DEVNULL, check=False)
    assert "administratively prohibited" in done.stderr, done.stderr
    at = words.index("--")
    sftp = ["sftp", "-b", "-", *words[1 : words.index("-p")], "-P", words[words.index("-p") + 1]]
    commands = "put /etc/hostname /etc/gpuaas-was-here\n"
    there = [*sftp, f"root@{words[at + 1]}"]
    done = subprocess.run(there, input=commands, capture_output=True, text=True, timeout=180, check=False)
    assert "Permission denied" in done.stderr, done.stderr


HIDDEN = "(setsid sleep 4811 >/dev/null 2>&1 &); sleep 4812"


def _inside(ground: Ground, who: Person) -> subprocess.Popen[bytes]:
    session = who.begin("--", HIDDEN, stdin=subprocess.DEVNULL)
    wait_until(lambda: len(re.findall("sleep 481[12]", traces(ground))) == 2, 120, "the command to run")
    return session


def _put_out(ground: Ground, session: subprocess.Popen[bytes], since: float) -> None:
    try:
        assert session.wait(120) == 255
    finally:
        session.kill()
    nothing_stays(ground)
    took = time.monotonic() - since
    assert took <= promised(ENDS_WITHIN_S), f"it lived on for {took:.1f} s"
    print(f"put out after {took:.2f} s")


def test_a_revoked_person_is_out_with_everything_they_hid(ground: Ground, ops: Person) -> None:
    session = _inside(ground, ops)
    live = [g for g in ground.cli_json("grant", "list", "-p", "research") if g["principal_id"] == ops.id]
    newest = max(live, key=lambda g: g["id"])
    assert newest["purpose"] == "person"
    done = ground.cli("grant", "revoke", newest["id"], "--yes", "--reason", "a laptop was stolen", "-p", "research")
    assert done.returncode == 0, done.stderr
    _put_out(ground, session, since=time.monotonic())


def test_a_person_who_loses_the_right_is_out(ground: Ground, instance: InstanceView) -> None:
    leaver = person(ground, "project_admin", ground.research)
    session = _inside(ground, leaver)
    bindings = ground.demo.boss.list_role_bindings(ground.demo.tenant_id, limit=200).items
    (binding,) = [one.id for one in bindings if one.principal_id == leaver.id]
    since = time.monotonic()
    ground.demo.boss.remove_role_binding(ground.demo.tenant_id, binding)
    _put_out(ground, session, since)
    assert leaver.ssh("--", "id").returncode == 5


def test_the_private_key_is_nowhere_but_where_it_was_made(ground: Ground, ops: Person) -> None:
    given, canaries = ops.given(), Canaries()
    folder = Path(given["folder"])
    body = "".join((folder / "key").read_text().splitlines()[1:-1])
    canaries.watch("the private key", base64.b64decode(body)[SEED])
    assert _tried(given["command"]).returncode == 0
    core = ground.stack.folder.process("core")
    assert core
    told = json.dumps([one.data for one in ground.events()]).encode()
    places = [*under(ground.stack.root, but=set()), ("events", told), *process(core.pid)]
    assert any(name.endswith("core.db") for name, _ in places), "the store is looked at"
    assert not canaries.hits(places)
    assert canaries.hits([("its own file", body.encode())]), "the mark would not be found anywhere"


def test_taking_the_instance_down_puts_everybody_out(ground: Ground, ops: Person, instance: InstanceView) -> None:
    session = _inside(ground, ops)
    done = ground.gone(ground.instance(instance.id))
    assert session.wait(120) == 255
    nothing_stays(ground)
    (left,) = ground.cli_json("operation", "certificate", done.id, "-p", "research")
    assert left["access"]["open_grants"] == 0
