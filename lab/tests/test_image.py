"""The recipe decides when an image is rebuilt; the machine's own apt decides where packages come from."""

from dataclasses import replace
from pathlib import Path

import pytest
from gpuaas_lab import aptsources, image
from gpuaas_lab.errors import CommandFailed, ImageFailed, NoAptSource
from gpuaas_lab.recipe import Recipe

DEB822 = """\
Types: deb
# an old snapshot
URIs: http://mirror.test/deb
Suites: bookworm bookworm-updates
Components: main contrib

Types: deb
URIs: http://mirror.test/deb-security
Suites: bookworm-security
Components: main

Types: deb
URIs: https://other.test/node
Suites: nodistro
Components: main
"""


def test_the_recipe_names_what_a_gpu_host_carries() -> None:
    packages = Recipe.load("bookworm").packages
    assert {"openssh-server", "python3-cryptography", "slurmd", "mariadb-server"} <= set(packages)


def test_a_changed_package_list_gives_another_image() -> None:
    recipe = Recipe.load("bookworm")
    assert replace(recipe, text=recipe.text.replace('"sudo"', '"doas"')).digest != recipe.digest


def test_a_changed_comment_does_not() -> None:
    recipe = Recipe.load("bookworm")
    assert replace(recipe, text="# a new comment\n" + recipe.text).digest == recipe.digest


def test_another_release_gives_another_image() -> None:
    assert Recipe.load("trixie").digest != Recipe.load("bookworm").digest


def test_no_ssh_or_munge_key_stays_in_the_image() -> None:
    removed = Recipe.load("bookworm").data["remove"]["paths"]
    assert {"/etc/ssh/ssh_host_*", "/etc/munge/munge.key"} <= set(removed)


def test_deb822_sources_are_read_main_archive_first(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    found = aptsources.find("bookworm", tmp_path)
    assert [source.suite for source in found] == ["bookworm", "bookworm-updates", "bookworm-security"]
    assert found[0].uri == "http://mirror.test/deb"


def test_one_line_sources_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(
        "# deb http://no.test x main\ndeb [arch=amd64] http://m.test/d bookworm main\n"
    )
    assert aptsources.find("bookworm", tmp_path)[0].uri == "http://m.test/d"


def test_a_machine_without_a_debian_source_says_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(NoAptSource) as caught:
        aptsources.find("bookworm", tmp_path)
    assert "GPUAAS_LAB_MIRROR" in caught.value.way_out


def test_a_mirror_of_ones_own_choice_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUAAS_LAB_MIRROR", "http://mine.test/deb")
    assert aptsources.find("bookworm", tmp_path)[0].uri == "http://mine.test/deb"


def test_a_build_that_fails_leaves_no_image_and_no_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_network(*_: object) -> None:
        raise CommandFailed("debootstrap", 1, "could not resolve")

    monkeypatch.setenv("GPUAAS_LAB_MIRROR", "http://mine.test/deb")
    monkeypatch.setattr(image, "_debootstrap", no_network)
    with pytest.raises(ImageFailed) as caught:
        image.ensure(lambda _: None)
    assert "apt-get update" in caught.value.way_out
    assert list((tmp_path / "cache").glob("image-*")) == []


def test_a_half_built_image_of_a_killed_build_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe.load(aptsources.release_name())
    half = tmp_path / "cache" / f"image-{recipe.digest}.building" / "root"
    half.mkdir(parents=True)
    monkeypatch.setattr(image, "_build", lambda _recipe, path, _say: path.mkdir())
    assert image.ensure(lambda _: None) == tmp_path / "cache" / f"image-{recipe.digest}"
