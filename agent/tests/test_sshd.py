"""Putting trust in place without ever leaving sshd with something it does not accept."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from gpuaas_agent import files
from gpuaas_agent.errors import SshdRefused
from gpuaas_agent.places import Places
from gpuaas_agent.sshd import Sshd
from gpuaas_agent.trust import Trust


@pytest.fixture
def trust(view: Any, host_key: Any) -> Trust:
    return Trust.of(view, host_key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode())


def tree(places: Places) -> dict[str, bytes]:
    folder = places.root / "etc/ssh"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_first_trust_is_written_tested_and_loaded(sshd: Sshd, programs: Any, trust: Trust, places: Places) -> None:
    assert sshd.apply(trust)
    assert files.read(places.sshd_drop_in) is not None
    assert programs.reloads == 1


def test_the_same_trust_again_touches_nothing(sshd: Sshd, programs: Any, trust: Trust) -> None:
    sshd.apply(trust)
    calls = len(programs.calls)
    assert not sshd.apply(trust)
    assert len(programs.calls) == calls


def test_a_changed_allocation_needs_no_reload(sshd: Sshd, programs: Any, trust: Trust, places: Places) -> None:
    sshd.apply(trust)
    assert sshd.apply(replace(trust, principals={"root": b"alloc_3\n"}))
    assert files.read(places.ssh / "principals/root") == b"alloc_3\n"
    assert programs.reloads == 1


def test_a_revocation_list_that_openssh_cannot_read_never_reaches_sshd(
    places: Places, trust: Trust, programs: Any
) -> None:
    def keygen_refuses(argv: Any) -> tuple[int, str]:
        return (255, "Invalid KRL file") if argv[0] == "ssh-keygen" else programs(argv)

    before = tree(places)
    with pytest.raises(SshdRefused, match="Invalid KRL"):
        Sshd(places, keygen_refuses).apply(replace(trust, revoked=(7,)))
    assert tree(places) == before


def test_revoking_needs_no_reload(sshd: Sshd, programs: Any, trust: Trust, places: Places) -> None:
    sshd.apply(trust)
    assert sshd.apply(replace(trust, revoked=(7, 8)))
    assert files.read(places.ssh / "revoked_serials") == b"7\n8\n"
    assert programs.reloads == 1


def test_a_login_name_that_is_no_longer_listed_loses_its_file(sshd: Sshd, trust: Trust, places: Places) -> None:
    sshd.apply(replace(trust, principals={"root": b"a\n", "ops": b"b\n"}))
    sshd.apply(replace(trust, principals={"root": b"a\n"}))
    assert files.read(places.ssh / "principals/ops") is None


def test_a_candidate_that_sshd_rejects_never_reaches_its_files(
    sshd: Sshd, programs: Any, trust: Trust, places: Places
) -> None:
    before = tree(places)
    programs.refuse = {1}
    with pytest.raises(SshdRefused):
        sshd.apply(trust)
    assert tree(places) == before
    assert programs.reloads == 0


def test_what_fails_after_all_is_put_back_as_it_was(sshd: Sshd, programs: Any, trust: Trust, places: Places) -> None:
    sshd.apply(trust)
    before = tree(places)
    programs.refuse = {4}
    with pytest.raises(SshdRefused):
        sshd.apply(replace(trust, host_certificate=b"other\n", principals={"root": b"x\n", "new": b"y\n"}))
    assert tree(places) == before
    assert sshd.apply(replace(trust, principals={"root": b"x\n"})), "the agent could not go on after a refusal"


def test_a_file_edited_by_hand_is_corrected(sshd: Sshd, trust: Trust, places: Places) -> None:
    sshd.apply(trust)
    (places.ssh / "principals/root").write_text("mallory\n")
    assert sshd.apply(trust)
    assert files.read(places.ssh / "principals/root") == b"alloc_1\nalloc_2\n"


def test_a_full_disk_puts_everything_back(
    sshd: Sshd, trust: Trust, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.apply(trust)
    before = tree(places)

    def full(path: Path, data: bytes, mode: int = 0o644) -> bool:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(files, "write_if_changed", full)
        with pytest.raises(OSError, match="No space left"):
            sshd.apply(replace(trust, principals={"root": b"x\n"}))
    assert tree(places) == before


def test_the_port_is_what_sshd_itself_says(places: Places) -> None:
    assert Sshd(places, lambda _: (0, "usepam yes\nport 2222\n")).port() == 2222
