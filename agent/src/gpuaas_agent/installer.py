"""Installs the GPUaaS agent on this host and enrols it. Run by the command that `gpuaas node enrol` prints.

It is self-contained: the platform serves this text, with version and digest filled in, to new hosts. Requires Debian
12 or similar, root, python3. The API's address and the node's name are the arguments; the one-time token comes on
standard input, because other users can read arguments. Safe to run again.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import NoReturn

VERSION, SHA256 = "@VERSION@", "@SHA256@"
HOME = Path("/opt/gpuaas-agent")
NEEDED = {"python3-cryptography": "cryptography", "openssh-server": "/usr/sbin/sshd"}


def main(api: str, name: str) -> None:
    if os.geteuid() != 0:
        stop("Run this as root.")
    token = sys.stdin.readline().strip()
    if not token:
        stop("The one-time token must come on standard input; copy the whole command that `gpuaas node enrol` printed.")
    bring_packages()
    unpack(fetch(f"{api.rstrip('/')}/v1/agent/{VERSION}"))
    settings = json.dumps({"api": api, "token": token, "node_name": name})
    environment = {**os.environ, "PYTHONPATH": str(HOME / "current"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "gpuaas_agent", "install"], input=settings, env=environment, text=True, check=False
    )
    sys.exit(done.returncode)


def bring_packages() -> None:
    missing = [name for name, what in NEEDED.items() if not there(what)]
    if not missing:
        return
    print(f"installing {', '.join(missing)}", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", *missing]):
        subprocess.run(["/usr/bin/apt-get", *arguments], env=quiet, check=False, stdin=subprocess.DEVNULL)
    missing = [name for name, what in NEEDED.items() if not there(what)]
    if missing:
        stop(
            f"This host lacks {' and '.join(missing)}, and its package sources do not have them. Without internet, put "
            "the Debian packages of these names (and what they depend on) on the host, run `apt-get install ./*.deb`, "
            "and then this command again; its token works for ten minutes, afterwards create a new one."
        )


def there(what: str) -> bool:
    if what.startswith("/"):
        return Path(what).exists()
    probe = ["/usr/bin/python3", "-c", f"import {what}"]
    return subprocess.run(probe, check=False, capture_output=True).returncode == 0


def fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the address a person pasted
            data = answer.read(64 << 20)
    except OSError as error:
        stop(f"{url} does not respond: {error}. Check that this host can reach the platform.")
    if hashlib.sha256(data).hexdigest() != SHA256:
        stop(f"The digest of {url} does not match. Nothing was installed; create a new enrolment command.")
    return data


def unpack(archive: bytes) -> None:
    """Extract the archive into a folder of its own, then let the link `current` point to that folder."""
    release = HOME / "releases" / f"{VERSION}-{SHA256[:12]}"
    if not release.exists():
        unfinished = release.with_name(release.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for entry in tar:
                path = unfinished / entry.name
                content = tar.extractfile(entry) if entry.isfile() else None
                if content is None or ".." in path.parts:
                    stop(f"The archive holds {entry.name!r}, which is not a file of the agent.")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
        unfinished.rename(release)
    link = HOME / ".current.new"
    link.unlink(missing_ok=True)
    link.symlink_to(Path("releases") / release.name)
    link.replace(HOME / "current")


def stop(sentence: str) -> NoReturn:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        stop("Pass the platform's address and the node's name; `gpuaas node enrol NAME` prints the whole command.")
    main(*sys.argv[1:])
