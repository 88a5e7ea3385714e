"""The floor's side of bringup.py: the same jobs by hand, over one SSH connection per host, all hosts at once.

An enrolled host takes certificates only, so each host gets an sshd of its own for the floor, with a key for this run.
"""

import asyncio
import base64
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from gpuaas_lab.hosts import Lab

HERE = Path(__file__).parent
SSH_PORT = 2222
CLEAN, DEPLOY, PACKAGES = ((HERE / name).read_text() for name in ("floor-clean.sh", "floor.sh", "floor-packages.sh"))

LOOK = """
sha256sum /etc/slurm/*.conf /etc/munge/munge.key >/dev/null
[ "$(systemctl is-active munge {unit} | sort -u)" = active ] && id floor >/dev/null
"""
DRAIN = """
scontrol update nodename={node} state=drain reason=floor
until [ "$(sinfo -h -n {node} -o %t)" = drain ]; do sleep 0.02; done
"""
LEAVE = "systemctl stop slurmd munge; rm -rf /etc/slurm/*.conf /etc/munge/munge.key /var/lib/slurm/slurmd/*"
DELETE = 'scontrol delete nodename={node}; [ -z "$(sinfo -h -n {node} -o %N)" ]'


@dataclass(frozen=True)
class Place:
    """A host as the floor sees it."""

    name: str
    address: str

    @property
    def node(self) -> str:
        return f"floor-{self.name}"


@dataclass(frozen=True)
class Floor:
    key: asyncssh.SSHKey
    munge: str  # the cluster's key, for a whole run

    @classmethod
    def on(cls, lab: Lab, places: Sequence[Place]) -> "Floor":
        key = asyncssh.generate_private_key("ssh-ed25519")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda place: _side_door(lab, place.name, key), places))
        time.sleep(0.5)
        return cls(key, base64.b64encode(os.urandom(128)).decode())

    async def deploy(self, head: Place, workers: Sequence[Place], packages: bytes | None = None) -> dict[str, float]:
        """Seconds from the first packet until accounting was ready, and until the job had run on every worker."""
        started = time.time()
        places = list({place.name: place for place in (head, *workers)}.values())
        async with AsyncExitStack() as stack:
            lines = await asyncio.gather(*(self._connect(stack, place) for place in places))
            roles = {place.name: "worker" for place in workers} | {head.name: "both" if head in workers else "head"}
            said = await asyncio.gather(
                *(
                    self._one(line, place, roles[place.name], head, len(workers), packages)
                    for line, place in zip(lines, places, strict=True)
                )
            )
        moments = dict(line[1:].split() for text in said for line in text.splitlines() if line.startswith("@"))
        return {name: float(at) - started for name, at in moments.items()}

    async def _one(
        self,
        line: asyncssh.SSHClientConnection,
        place: Place,
        role: str,
        head: Place,
        workers: int,
        packages: bytes | None,
    ) -> str:
        if packages:
            await _run(line, PACKAGES, packages)
        words = {"ROLE": role, "ADDRESS": head.address, "HEAD": head.name, "NODE": place.node, "KEY": self.munge}
        text = "".join(f"{name}={value}\n" for name, value in (words | {"WORKERS": str(workers)}).items())
        return await _run(line, text + DEPLOY)

    async def add(self, head: Place, worker: Place) -> float:
        started = time.time()
        async with AsyncExitStack() as stack:
            control, line = await asyncio.gather(self._connect(stack, head), self._connect(stack, worker))
            await self._one(line, worker, "worker", head, 1, None)
            ready = f'until [ "$(sinfo -h -n {worker.node} -t idle -o %D)" = 1 ]; do sleep 0.02; done\n'
            await _run(control, f"{ready}cd /tmp && runuser -u floor -- srun -w {worker.node} hostname </dev/null")
            return time.time() - started

    async def remove(self, head: Place, worker: Place) -> float:
        started = time.time()
        async with AsyncExitStack() as stack:
            control, line = await asyncio.gather(self._connect(stack, head), self._connect(stack, worker))
            await _run(control, DRAIN.format(node=worker.node))
            await _run(line, LEAVE)
            await _run(control, DELETE.format(node=worker.node))
            return time.time() - started

    async def look(self, head: Place, workers: Sequence[Place]) -> float:
        """That everything is as it should be: what a run with nothing to do cannot leave out."""
        started = time.time()
        async with AsyncExitStack() as stack:
            lines = await asyncio.gather(*(self._connect(stack, place) for place in (head, *workers)))
            units = ["mariadb slurmdbd slurmctld", *("slurmd" for _ in workers)]
            await asyncio.gather(*(_run(c, LOOK.format(unit=u)) for c, u in zip(lines, units, strict=True)))
            await _run(lines[0], f'[ "$(sinfo -h -t idle -o %D)" = {len(workers)} ]')
            return time.time() - started

    async def clean(self, places: Sequence[Place]) -> None:
        async with AsyncExitStack() as stack:
            lines = await asyncio.gather(*(self._connect(stack, place) for place in places))
            await asyncio.gather(*(_run(line, CLEAN) for line in lines))

    async def _connect(self, stack: AsyncExitStack, place: Place) -> asyncssh.SSHClientConnection:
        options = {"known_hosts": None, "config": None, "agent_path": None, "client_keys": [self.key]}
        return await stack.enter_async_context(asyncssh.connect(place.address, SSH_PORT, username="root", **options))


async def _run(line: asyncssh.SSHClientConnection, script: str, data: bytes | None = None) -> str:
    """The script comes on standard input; with data it is an argument, and the data is the input."""
    if data is None:
        done = await line.run("bash -s", input=script, timeout=300)
    else:
        done = await line.run(f"bash -c '{_quoted(script)}'", input=data, encoding=None, timeout=300)
    if done.exit_status != 0:
        sys.exit(f"The floor failed: {done.stdout!r} {done.stderr!r}")
    return done.stdout if isinstance(done.stdout, str) else (done.stdout or b"").decode()


def _quoted(script: str) -> str:
    return script.replace("'", "'\\''")


def _side_door(lab: Lab, host: str, key: asyncssh.SSHKey) -> None:
    lab.push(host, "/root/.bench-keys", key.export_public_key(), 0o600)
    options = ["-p", str(SSH_PORT), "-h", "/etc/ssh/ssh_host_ed25519_key", "-o", "AuthorizedKeysFile=/root/.bench-keys"]
    words = ["systemd-run", "-q", "--unit=bench-sshd", "/usr/sbin/sshd", "-D", "-f", "/dev/null", *options]
    lab.exec(host, [*words, "-o", "StrictModes=no"], timeout=20)
