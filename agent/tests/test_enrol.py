"""Joining the platform, and dying at every point on the way."""

import json
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from gpuaas_agent import enrol, files, identity
from gpuaas_agent.config import Config
from gpuaas_agent.errors import NotConfigured, TokenInvalid, Unreachable
from gpuaas_agent.identity import Node
from gpuaas_agent.places import Places
from gpuaas_agent.sshd import Sshd


class Killed(BaseException):
    """Stands for kill -9: nothing after it runs."""


def join(places: Places, sshd: Sshd) -> Node:
    return enrol.ensure(places, Config.load(places), sshd)


def test_a_host_joins_with_its_token_and_forgets_the_token(configured: Places, sshd: Sshd, platform: Any) -> None:
    node = join(configured, sshd)
    assert node.node_id in platform.nodes
    assert "token" not in json.loads(configured.config.read_text())
    assert json.loads(configured.config.read_text())["node_name"] == "a"


def test_the_key_is_private_and_stays_on_the_host(configured: Places, sshd: Sshd, platform: Any) -> None:
    join(configured, sshd)
    assert stat.S_IMODE(configured.key.stat().st_mode) == 0o600
    assert stat.S_IMODE(configured.node.stat().st_mode) == 0o600
    assert "d" not in json.loads(platform.node()["who"][0])


def test_joining_twice_asks_once(configured: Places, sshd: Sshd, platform: Any) -> None:
    assert join(configured, sshd) == join(configured, sshd)
    assert platform.seen.count("POST /v1/enrol") == 1


@pytest.mark.parametrize("written_files", range(8))
def test_killed_before_any_of_its_writes_it_becomes_the_same_single_node(
    configured: Places, sshd: Sshd, platform: Any, monkeypatch: pytest.MonkeyPatch, written_files: int
) -> None:
    real, left = files.write, written_files

    def write(path: Path, data: Any, mode: int = 0o644) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        real(path, data, mode)

    with monkeypatch.context() as dying:
        dying.setattr(files, "write", write)
        with suppress(Killed):
            join(configured, sshd)
    assert join(configured, sshd).node_id == "node_1"
    assert list(platform.nodes) == ["node_1"]
    assert "token" not in json.loads(configured.config.read_text())


def test_a_lost_answer_is_asked_for_again_and_gives_the_same_node(
    configured: Places, sshd: Sshd, platform: Any
) -> None:
    platform.lose_answers.add("enrol")
    with pytest.raises(Unreachable):
        join(configured, sshd)
    assert join(configured, sshd).node_id == "node_1"
    assert list(platform.nodes) == ["node_1"]


def test_a_token_that_another_machine_used_is_refused_and_kept_out_of_nothing(
    configured: Places, sshd: Sshd, platform: Any
) -> None:
    platform.tokens["one-time-token-0123456789"] = ("another", "host")
    with pytest.raises(TokenInvalid):
        join(configured, sshd)
    assert not configured.node.exists()


def test_a_new_token_means_a_new_identity(configured: Places, sshd: Sshd, platform: Any) -> None:
    join(configured, sshd)
    first = configured.key.read_bytes()
    platform.tokens["second-token-0123456789ab"] = None
    configured.config.write_text(json.dumps({"api": platform.url, "token": "second-token-0123456789ab"}))
    assert join(configured, sshd).node_id == "node_2"
    assert configured.key.read_bytes() != first


@pytest.mark.parametrize("removed_files", range(6))
def test_killed_while_it_leaves_its_identity_behind_it_takes_no_former_key_along(
    configured: Places, sshd: Sshd, platform: Any, monkeypatch: pytest.MonkeyPatch, removed_files: int
) -> None:
    join(configured, sshd)
    first, left, real = configured.key.read_bytes(), removed_files, files.remove
    platform.tokens["second-token-0123456789ab"] = None
    configured.config.write_text(json.dumps({"api": platform.url, "token": "second-token-0123456789ab"}))

    def remove(path: Path) -> None:
        nonlocal left
        if left == 0:
            raise Killed
        left -= 1
        real(path)

    with monkeypatch.context() as dying:
        dying.setattr(files, "remove", remove)
        with suppress(Killed):
            join(configured, sshd)
    assert join(configured, sshd).node_id == "node_2"
    assert configured.key.read_bytes() != first


def test_a_host_without_config_is_told_what_to_write(places: Places) -> None:
    with pytest.raises(NotConfigured) as caught:
        Config.load(places)
    assert '"api"' in caught.value.way_out


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"api": "file:///etc/passwd"}', '{"api": ""}', '{"token": "x"}', "null"]
)
def test_a_config_that_makes_no_sense_is_refused(places: Places, text: str) -> None:
    files.write(places.config, text)
    with pytest.raises(NotConfigured):
        Config.load(places)


def test_without_a_token_it_says_that_one_is_needed(places: Places, sshd: Sshd, platform: Any) -> None:
    files.write(places.config, json.dumps({"api": platform.url}))
    with pytest.raises(NotConfigured, match="no enrolment token"):
        join(places, sshd)


def test_an_assertion_is_short_lived_and_never_the_same() -> None:
    key = Ed25519PrivateKey.generate()
    one, two = (identity.assertion(key, "node_1", "gpuaas", 1000.0) for _ in range(2))
    assert one != two
