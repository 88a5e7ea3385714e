"""Builds the image of all hosts, once, into a cache outside the repository.

The machine's own apt fetches the packages (with its proxy, certificates and credentials, none of which is copied into
the image); the image's own dpkg installs them. Everything happens under a temporary name in private namespaces and is
renamed at the end: a crash leaves nothing in use, no mount and, thanks to the parent-death signal, no process.
"""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuaas_lab import aptsources, places
from gpuaas_lab.errors import CommandFailed, ImageFailed
from gpuaas_lab.recipe import Recipe
from gpuaas_lab.run import CLEAN_ENV, run
from gpuaas_lab.state import lock

Say = Callable[[str], None]

# Its own mounts and process tree, all of it gone when this process is.
SEALED = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]
NO_SERVICES = "#!/bin/sh\nexit 101\n"
BUILD_TIMEOUT = 1800


def path_for(recipe: Recipe) -> Path:
    return places.cache_root() / f"image-{recipe.digest}"


def ensure(say: Say) -> Path:
    """Return the path of a complete image, built now if needed."""
    recipe = Recipe.load(aptsources.release_name())
    image = path_for(recipe)
    if image.is_dir():
        return image
    with lock(places.cache_root() / "image.lock", "image", BUILD_TIMEOUT):
        if not image.is_dir():
            _build(recipe, image, say)
    return image


def remove_all() -> None:
    """Delete images, incomplete images and the lock file."""
    root = places.cache_root()
    for path in root.glob("image-*"):
        shutil.rmtree(path, ignore_errors=True)
    (root / "image.lock").unlink(missing_ok=True)
    if root.is_dir() and not any(root.iterdir()):
        root.rmdir()


def _build(recipe: Recipe, image: Path, say: Say) -> None:
    work = image.with_name(image.name + ".building")
    shutil.rmtree(work, ignore_errors=True)
    root = work / "root"
    root.mkdir(parents=True)
    sources = aptsources.find(recipe.suite)
    try:
        say(f"image 1/4: base system, Debian {recipe.suite} (about 40 s)")
        _debootstrap(sources[0], root)
        say(f"image 2/4: fetching {len(recipe.packages)} packages and what they need")
        _fetch(recipe, sources, work / "apt", root)
        say("image 3/4: installing them (about 30 s)")
        _write_files(recipe, root)
        _install(root)
        say("image 4/4: removing keys and identity, services off")
        _finish(recipe, root)
        root.rename(image)
    except CommandFailed as failed:
        raise ImageFailed(
            f"The image could not be built. {failed.sentence}",
            "Check that `apt-get update` works on this machine, then run `gpuaas-lab image` again.",
        ) from failed
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"image ready: {image}")


def _debootstrap(source: aptsources.Source, root: Path) -> None:
    options = ["--variant=minbase", f"--keyring={source.keyring}"]
    command = [*SEALED, "debootstrap", *options, source.suite, str(root), source.uri]
    run(command, timeout=BUILD_TIMEOUT, env={**_machine_env(), **_proxy()})


def _fetch(recipe: Recipe, sources: Sequence[aptsources.Source], apt: Path, root: Path) -> None:
    (apt / "lists" / "partial").mkdir(parents=True)
    (apt / "sources.list").write_text("".join(f"{source.line}\n" for source in sources))
    settings = {
        "APT::Sandbox::User": "root",
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": apt / "lists",
        "Dir::State::status": root / "var/lib/dpkg/status",
        "Dir::Cache": apt,
        "Dir::Cache::archives": root / "var/cache/apt/archives",
        "Acquire::Languages": "none",
    }
    options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    for deb in (root / "var/cache/apt/archives").glob("*.deb"):
        deb.unlink()
    run([*SEALED, "apt-get", *options, "-q", "update"], timeout=300)
    install = ["-qy", "--no-install-recommends", "--download-only", "install", *recipe.packages]
    run([*SEALED, "apt-get", *options, *install], timeout=BUILD_TIMEOUT)


def _install(root: Path) -> None:
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text(NO_SERVICES)
    policy.chmod(0o755)
    packages = [f"/var/cache/apt/archives/{deb.name}" for deb in (root / "var/cache/apt/archives").glob("*.deb")]
    try:
        _inside(root, ["apt-get", "-qy", "--no-install-recommends", "install", *packages])
    finally:
        policy.unlink()


def _finish(recipe: Recipe, root: Path) -> None:
    units = recipe.data["units"]
    for verb in ("disable", "mask", "enable"):
        _inside(root, ["systemctl", verb, *units[verb]])
    for pattern in recipe.data["remove"]["paths"]:
        for path in root.glob(pattern.lstrip("/")):
            path.unlink() if not path.is_dir() else shutil.rmtree(path)
    for name in recipe.data["remove"]["empty"]:
        (root / name.lstrip("/")).write_text("")


def _write_files(recipe: Recipe, root: Path) -> None:
    for file in recipe.data["files"]:
        path = root / file["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file["text"].lstrip("\n"))
        path.chmod(file["mode"])


def _inside(root: Path, argv: Sequence[str]) -> None:
    env = {**CLEAN_ENV, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
    run([*SEALED, f"--mount-proc={root}/proc", "chroot", str(root), *argv], timeout=BUILD_TIMEOUT, env=env)


def _machine_env() -> dict[str, str]:
    return {**os.environ, "PATH": CLEAN_ENV["PATH"], "LC_ALL": "C.UTF-8"}


def _proxy() -> dict[str, str]:
    """Return the proxy of apt's configuration, which wget (used by debootstrap) does not read."""
    found = {}
    for scheme in ("http", "https"):
        words = ["apt-config", "shell", "PROXY", f"Acquire::{scheme}::Proxy"]
        answer = run(words).text.strip().removeprefix("PROXY=").strip("'\"")
        if answer and answer != "DIRECT":
            found[f"{scheme}_proxy"] = answer
    return found
