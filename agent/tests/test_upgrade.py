"""Another version of the agent: tried as a real process by the present one, and taken only when it was heard."""

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path

import pytest
from gpuaas_agent import upgrade
from gpuaas_agent.errors import UpgradeRefused
from gpuaas_agent.places import Places

HEARD = "import os, pathlib, time\npathlib.Path(os.environ['GPUAAS_AGENT_PROOF']).write_text('heard')\ntime.sleep(60)\n"
CANDIDATES = {
    "ends at once": "raise SystemExit(7)\n",
    "cannot be read": "def broken(:\n",
    "is never heard": "import time\ntime.sleep(60)\n",
    "does not even stop": "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(60)\n",
}


def archive(main: str, version: str = "0.2.0", **more: str) -> bytes:
    buffer = io.BytesIO()
    content = {"gpuaas_agent/__init__.py": f'__version__ = "{version}"\n', "gpuaas_agent/__main__.py": main} | more
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in content.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """As the installer leaves it, with one version."""
    places = Places(tmp_path)
    (places.releases / "0.1.0-first").mkdir(parents=True)
    places.current.symlink_to("releases/0.1.0-first")
    places.state.mkdir(parents=True)
    monkeypatch.setattr(upgrade, "PYTHON", sys.executable)
    return places


def stage(host: Places, data: bytes) -> str:
    return upgrade.stage(host, data, digest(data))


def test_a_version_that_is_heard_is_taken_and_the_one_before_is_kept(host: Places) -> None:
    release = stage(host, archive(HEARD))
    assert os.readlink(host.current) == "releases/0.1.0-first", "switched before it was tried"
    assert upgrade.pending(host)
    assert upgrade.try_candidate(host, 20)
    assert os.readlink(host.current) == f"releases/{release}"
    assert not upgrade.pending(host)
    assert upgrade.outcome(host) == {"release": release, "asked_by": "", "taken": True, "why": ""}
    third = stage(host, archive(HEARD, "0.3.0"))
    assert upgrade.try_candidate(host, 20)
    assert {path.name for path in host.releases.iterdir()} == {release, third}


@pytest.mark.parametrize("what", CANDIDATES)
def test_a_version_that_is_not_heard_is_left_and_the_present_one_goes_on(
    host: Places, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upgrade, "STOP_S", 0.3)
    release = stage(host, archive(CANDIDATES[what]))
    assert not upgrade.try_candidate(host, 0.5 if "never" in what or "stop" in what else 20)
    assert os.readlink(host.current) == "releases/0.1.0-first"
    assert not upgrade.pending(host), "it would be tried for ever"
    told = upgrade.outcome(host)
    assert told
    assert (told["release"], told["taken"]) == (release, False)
    assert told["why"]


def test_a_power_cut_during_the_trial_repeats_it_but_not_for_ever(host: Places) -> None:
    release = stage(host, archive(HEARD))
    for tries in range(upgrade.MOST_TRIES):
        host.trial.write_text(json.dumps({"release": release, "tries": tries}))
        assert upgrade.pending(host)
    host.trial.write_text(json.dumps({"release": release, "tries": upgrade.MOST_TRIES}))
    assert not upgrade.try_candidate(host, 20)
    assert os.readlink(host.current) == "releases/0.1.0-first"


def test_a_candidate_does_not_try_itself(host: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(host, archive(HEARD))
    monkeypatch.setenv(upgrade.PROOF, str(host.state / "proof"))
    assert not upgrade.pending(host)
    upgrade.heard(host)
    assert (host.state / "proof").exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (archive(HEARD), "0" * 64),
        (b"no archive", None),
        (archive(HEARD, **{"../../etc/cron.d/x": "root"}), None),
        (archive(HEARD, **{"gpuaas_agent/../../x": "x"}), None),
        (archive(HEARD, **{"other/x.py": "x"}), None),
        (archive(HEARD, version="$(reboot)"), None),
    ],
    ids=["another digest", "no archive", "outside", "dots", "another package", "a strange version"],
)
def test_what_is_no_version_of_the_agent_is_refused_and_nothing_changes(
    host: Places, data: bytes, said: str | None
) -> None:
    before = sorted(str(path) for path in host.root.rglob("*"))
    with pytest.raises(UpgradeRefused):
        upgrade.stage(host, data, said or digest(data))
    assert sorted(str(path) for path in host.root.rglob("*")) == before


def test_an_agent_without_releases_says_so(host: Places) -> None:
    host.current.unlink()
    with pytest.raises(UpgradeRefused, match="no releases"):
        stage(host, archive(HEARD))


def test_the_version_that_runs_is_not_tried_again(host: Places) -> None:
    data = archive(HEARD)
    stage(host, data)
    assert upgrade.try_candidate(host, 20)
    with pytest.raises(UpgradeRefused, match="is already running"):
        stage(host, data)
