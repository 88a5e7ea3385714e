"""The package set: the same packages give the same bytes, and a host's apt can read it."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from gpuaas_sdk.host_steps.validate import BadWord
from gpuaas_slurm.packages import build
from gpuaas_slurm.packages.build import BuildFailed, Package
from gpuaas_slurm.steps import packages

CONTROL = (
    "Package: {name}\nVersion: 1:2.0-1\nArchitecture: all\nMaintainer: a test <test@example.org>\nDescription: tiny\n"
)


@pytest.fixture
def debs(tmp_path: Path) -> list[Path]:
    made = []
    for name in ("second-thing", "first-thing"):
        root = tmp_path / name
        (root / "DEBIAN").mkdir(parents=True)
        (root / "DEBIAN/control").write_text(CONTROL.format(name=name))
        subprocess.run(["dpkg-deb", "--build", str(root)], check=True, capture_output=True, timeout=30)
        made.append(tmp_path / f"{name}.deb")
    return made


@pytest.fixture
def fetched(debs: list[Path], monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(build, "_fetch", lambda work, wanted: debs)
    return debs


def test_the_same_packages_give_the_same_bytes(fetched: list[Path], tmp_path: Path) -> None:
    first = build.build(tmp_path / "one.tar", ["first-thing"])
    fetched.reverse()
    second = build.build(tmp_path / "two.tar", ["first-thing"])
    assert first.sha256 == second.sha256
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.glob(".*")) == [], "nothing half-made is left"


def test_apt_of_a_host_installs_from_the_set_alone(fetched: list[Path], tmp_path: Path) -> None:
    made = build.build(tmp_path / "set.tar", ["first-thing"])
    repo = tmp_path / "repo"
    (repo / "lists/partial").mkdir(parents=True)
    (repo / "archives/partial").mkdir(parents=True)
    (repo / "status").touch()
    with tarfile.open(made.file) as tar:
        tar.extractall(repo, filter="data")
        assert {entry.uid for entry in tar.getmembers()} == {0}
    note = json.loads((repo / build.NOTE).read_text())
    assert [one["name"] for one in note["packages"]] == ["first-thing", "second-thing"]
    (repo / "sources.list").write_text(f"deb [trusted=yes] file:{repo} ./\n")
    settings = {
        "Dir::Etc::sourcelist": repo / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": repo / "lists",
        "Dir::State::status": repo / "status",
        "Dir::Cache": repo,
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "true",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    subprocess.run(["apt-get", *options, "-q", "update"], check=True, capture_output=True, timeout=60)
    words = ["apt-get", *options, "-qy", "--print-uris", "install", "first-thing"]
    output = subprocess.run(words, check=True, capture_output=True, text=True, timeout=60).stdout
    assert f"file:{repo}/" in output or f"file://{repo}/" in output
    assert "first-thing" in output


def test_what_apt_says_reaches_the_person(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="dpkg-deb did not work"):
        build._read(tmp_path / "nothing.deb")


def test_every_program_of_a_cluster_comes_in_a_wanted_package() -> None:
    assert {"slurmctld", "slurmd", "slurmdbd", "munge", "mariadb-server"} <= set(build.WANTED)


def test_a_name_with_a_colon_is_a_name_apt_can_find() -> None:
    one = Package("thing", "1:2.0-1", "amd64", "0" * 64, 1, "Package: thing", Path("x"))
    assert one.filename == "debs/thing_1%3a2.0-1_amd64.deb"


@pytest.mark.parametrize("bad", ["", "0" * 63, "../" + "0" * 61, "G" * 64, "0" * 64 + "\n"])
def test_only_a_digest_becomes_part_of_a_path(bad: str) -> None:
    with pytest.raises(BadWord):
        packages.path_of(bad)
