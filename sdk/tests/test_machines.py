"""Machine access against a real sshd: who gets in, which host is believed, how commands end."""

from __future__ import annotations

# ruff: noqa: ASYNC240 - looking at local files is what these tests are for
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
from gpuaas_sdk import errors
from gpuaas_sdk.machines.machine import OUTPUT_LIMIT, Machine

from sdk.tests.support.sshd import SSHD, Ca, Desk, Sshd

pytestmark = pytest.mark.skipif(
    SSHD is None or os.geteuid() != 0, reason="needs Debian's openssh-server, and root to log in as"
)
OWNER = "root:root"
StartSshd = Callable[..., Sshd]


@pytest.fixture(scope="module")
def user_ca() -> Ca:
    return Ca()


@pytest.fixture(scope="module")
def host_ca() -> Ca:
    return Ca()


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, user_ca: Ca, host_ca: Ca) -> Iterator[StartSshd]:
    Path("/run/sshd").mkdir(exist_ok=True)
    running: list[Sshd] = []

    def start(*, host_principals: list[str] | None, host_ca: Ca = host_ca) -> Sshd:
        directory = tmp_path_factory.mktemp("sshd")
        running.append(Sshd(directory, user_ca=user_ca, host_ca=host_ca, host_principals=host_principals))
        return running[-1]

    yield start
    for sshd in running:
        sshd.close()


@pytest.fixture(scope="module")
def sshd(start: StartSshd) -> Sshd:
    return start(host_principals=["node_1"])


@pytest.fixture
def desk(sshd: Sshd, user_ca: Ca, host_ca: Ca) -> Desk:
    return Desk(sshd, user_ca=user_ca, host_ca=host_ca)


async def connect(desk: Desk) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        await machine.run(["true"])


# --- commands


async def test_a_command_gives_exit_output_and_errors_apart(desk: Desk) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        result = await machine.run(["sh", "-c", "echo out; echo err >&2; exit 7"])
        assert (result.exit, result.stdout, result.stderr, result.ok) == (7, "out\n", "err\n", False)
        assert (await machine.run(["true"])).ok
        assert (await machine.run(["no-such-program"])).exit == 127


async def test_arguments_arrive_as_they_are(desk: Desk) -> None:
    strange = ["a b", "$(reboot)", "it's", "*", "", "ü\n"]
    async with Machine.connect(desk, "alloc_1") as machine:
        result = await machine.run(["printf", "%s|", *strange])
    assert result.stdout == "|".join(strange) + "|"


@pytest.mark.parametrize("data", ["line\n", b"\x00\xff" * 200_000])
async def test_input_arrives_whole(desk: Desk, data: str | bytes) -> None:
    raw = data.encode() if isinstance(data, str) else data
    async with Machine.connect(desk, "alloc_1") as machine:
        assert (await machine.run(["wc", "-c"], input=data)).stdout.strip() == str(len(raw))


async def test_a_command_that_does_not_read_its_input_still_answers(desk: Desk) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        assert (await machine.run(["true"], input=b"x" * 3_000_000)).ok


async def test_a_command_that_takes_too_long_is_ended_on_the_host_too(desk: Desk, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    async with Machine.connect(desk, "alloc_1") as machine:
        started = time.monotonic()
        with pytest.raises(errors.CommandTimedOut, match="within 3 s"):
            await machine.run(["sh", "-c", f"echo $$ > {pid_file}; exec sleep 90"], timeout=3)
        assert time.monotonic() - started < 45
        assert not Path(f"/proc/{pid_file.read_text().strip()}").exists()
        assert (await machine.run(["echo", "still here"])).stdout == "still here\n"


async def test_a_command_may_exit_124_by_itself(desk: Desk) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        assert (await machine.run(["sh", "-c", "exit 124"], timeout=30)).exit == 124


async def test_endless_output_does_not_fill_the_memory(desk: Desk) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        result = await machine.run(["head", "-c", str(OUTPUT_LIMIT * 2), "/dev/zero"])
    assert result.truncated
    assert len(result.stdout) == OUTPUT_LIMIT


async def test_a_file_is_replaced_at_once_with_mode_and_owner(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "munge key"
    path.write_text("old")
    async with Machine.connect(desk, "alloc_1") as machine:
        await machine.put(str(path), b"\x00secret", mode=0o400, owner=OWNER)
        assert await machine.read(str(path)) == b"\x00secret"
        assert await machine.read(str(tmp_path / "absent")) is None
    assert path.stat().st_mode & 0o7777 == 0o400
    assert [p.name for p in tmp_path.iterdir()] == ["munge key"]


async def test_a_file_that_cannot_be_written_says_why_and_leaves_nothing(desk: Desk, tmp_path: Path) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        with pytest.raises(errors.MachineError, match="no-such-user"):
            await machine.put(str(tmp_path / "x"), b"", owner="no-such-user:root")
    assert list(tmp_path.iterdir()) == []


# --- grants


async def test_many_commands_need_one_grant_and_the_log_names_the_operation(desk: Desk, sshd: Sshd) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        for _ in range(3):
            await machine.run(["true"])
    assert desk.granted == 1
    assert "op_1/epoch-1" in sshd.log.read_text()


async def test_a_broken_connection_is_opened_again_with_the_grant_while_it_lasts(desk: Desk, sshd: Sshd) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        sshd.drop_connections()
        with pytest.raises(errors.MachineUnreachable):
            await machine.run(["true"])
        assert (await machine.run(["true"])).ok
    assert desk.granted == 1


async def test_an_expired_grant_is_renewed_for_a_new_connection_with_a_new_key(sshd: Sshd, user_ca: Ca, host_ca: Ca):
    desk = Desk(sshd, user_ca=user_ca, host_ca=host_ca, expires_in_s=30)
    async with Machine.connect(desk, "alloc_1") as machine:
        await machine.close()
        assert (await machine.run(["true"])).ok
    assert desk.granted == 2
    assert len(set(desk.keys)) == 2


async def test_a_lost_claim_runs_nothing_more(desk: Desk, tmp_path: Path) -> None:
    async with Machine.connect(desk, "alloc_1") as machine:
        desk.stale = errors.stale_claim("op_1", "it was taken over")
        with pytest.raises(errors.StaleClaim):
            await machine.run(["touch", str(tmp_path / "x")])
    assert list(tmp_path.iterdir()) == []


# --- refusals


async def test_a_certificate_for_another_allocation_is_refused(sshd: Sshd, user_ca: Ca, host_ca: Ca) -> None:
    with pytest.raises(errors.AccessRefused) as caught:
        await connect(Desk(sshd, user_ca=user_ca, host_ca=host_ca, principal="alloc_2"))
    assert "127.0.0.1" in str(caught.value)
    assert caught.value.way_out


async def test_a_certificate_of_another_platform_is_refused(sshd: Sshd, host_ca: Ca) -> None:
    with pytest.raises(errors.AccessRefused):
        await connect(Desk(sshd, user_ca=Ca(), host_ca=host_ca))


async def test_an_expired_certificate_is_refused(sshd: Sshd, user_ca: Ca, host_ca: Ca) -> None:
    with pytest.raises(errors.AccessRefused):
        await connect(Desk(sshd, user_ca=user_ca, host_ca=host_ca, expires_in_s=-30))


@pytest.mark.parametrize(
    ("principals", "why"),
    [(["node_2"], "node_2"), ([], "every host"), (None, "bare key")],
    ids=["of another node", "without principals", "bare host key"],
)
async def test_a_host_that_does_not_prove_to_be_the_node_is_refused(
    start: StartSshd, user_ca: Ca, host_ca: Ca, principals: list[str] | None, why: str
) -> None:
    sshd = start(host_principals=principals)
    with pytest.raises(errors.HostIdentityWrong, match=why):
        await connect(Desk(sshd, user_ca=user_ca, host_ca=host_ca))
    assert "Accepted" not in sshd.log.read_text(), "our certificate was shown to a host we do not know"


async def test_a_host_certified_by_another_ca_is_refused(start: StartSshd, user_ca: Ca, host_ca: Ca) -> None:
    sshd = start(host_principals=["node_1"], host_ca=Ca())
    with pytest.raises(errors.HostIdentityWrong):
        await connect(Desk(sshd, user_ca=user_ca, host_ca=host_ca))
    assert "Accepted" not in sshd.log.read_text()


async def test_without_our_check_a_host_certificate_for_everybody_would_pass(
    start: StartSshd, user_ca: Ca, host_ca: Ca, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker can fail: asyncssh alone accepts it. If this test fails, asyncssh got stricter; good."""
    monkeypatch.setattr("gpuaas_sdk.machines.host_identity.HostCheck.look", lambda self, data: None)
    await connect(Desk(start(host_principals=[]), user_ca=user_ca, host_ca=host_ca))


async def test_if_asyncssh_stops_asking_us_nothing_is_believed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuaas_sdk.machines.host_identity.HostCheck.guard", lambda self, connection: None)
    with pytest.raises(errors.HostIdentityWrong):
        await connect(desk)


async def test_no_host_is_unreachable(desk: Desk) -> None:
    desk.port = 1
    with pytest.raises(errors.MachineUnreachable, match="port 1"):
        await connect(desk)


async def test_our_own_keys_and_settings_are_never_used(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """No agent, no ~/.ssh: only the certificate of this grant may open the door."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host *\n  ProxyCommand false\n")
    key = asyncssh.generate_private_key("ssh-ed25519")
    (tmp_path / ".ssh" / "id_ed25519").write_bytes(key.export_private_key("openssh"))
    await connect(desk)
