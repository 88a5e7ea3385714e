"""One platform on this machine: the paths of its files, the processes it runs, and its address."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gpuaas_sdk import Bearer, Client
from gpuaas_sdk.client.errors import GpuaasError

from gpuaas_lab.errors import LabError
from gpuaas_lab.stack import supervisor
from gpuaas_lab.stack.credentials import ADMIN, BOSS, Credentials
from gpuaas_lab.stack.services import Folder, Service


class Stack:
    def __init__(self, root: Path, port: int = 8080, gateway: str | None = None) -> None:
        self.root, self.port, self.gateway = root.absolute(), port, gateway
        self.folder = Folder(self.root / "run")
        self.api = f"http://127.0.0.1:{port}"

    @property
    def api_for_others(self) -> str:
        """Return the API's address as other machines see it, or the local address if it has no other."""
        return f"http://{self.gateway}:{self.port}" if self.gateway else self.api

    @property
    def credentials(self) -> Credentials:
        return Credentials.keep(self.root / "credentials.json")

    @property
    def identities(self) -> Path:
        return self.root / "identities"

    def start_core(self, timeout: float = 180) -> None:
        """Start the supervisor and the core and wait until it responds. The first administrator is created before the
        core listens."""
        self._check_port()
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ensure_admin()
        supervisor.start(self.folder)
        self.run_core()
        self.wait_ready(timeout)

    def run_core(self, **settings: str) -> None:
        """Write the service of the core; the supervisor restarts the core if its settings changed."""
        self.folder.want(Service("core", [program("gpuaas-core"), "serve"], self.core_env | settings))

    @property
    def core_env(self) -> dict[str, str]:
        listen = "127.0.0.1" + (f",{self.gateway}" if self.gateway else "")
        data = {"GPUAAS_CORE_DATA": str(self.root / "core"), "GPUAAS_CORE_LISTEN": listen}
        return data | {"GPUAAS_CORE_PORT": str(self.port)}

    @property
    def cli_config(self) -> Path:
        return self.root / "cli.json"

    @property
    def cli_env(self) -> dict[str, str]:
        return os.environ | {"GPUAAS_CONFIG": str(self.cli_config)}

    def signed_in_token(self, who: str) -> str:
        person = {
            "admin": (ADMIN, self.credentials.admin_password),
            "boss": (BOSS, self.credentials.tenant_admin_password),
        }
        email, password = person[who]
        with Client(self.api, Bearer()) as anonymous:
            return anonymous.sign_in(email, password).access_token

    def start_controller(
        self,
        prefix: list[str],
        identities: list[Path],
        env: dict[str, str] | None = None,
        name: str = "slurm-controller",
    ) -> None:
        """Start a Slurm controller as its own process with its own state, in another network namespace if `prefix` is
        given."""
        flags = [word for path in identities for word in ("--identity", str(path))]
        variables = {"GPUAAS_SLURM_STATE": str(self.root / name)} | (env or {})
        self.folder.want(Service(name, [*prefix, program("gpuaas-slurm"), "run", *flags, "--holder", name], variables))

    def wait_ready(self, timeout: float = 180) -> None:
        with Client(self.api, Bearer()) as client:
            wait_for(lambda: _answers(client), timeout, lambda: f"The core does not answer.\n{self.log_tail('core')}")

    def stop(self) -> None:
        for name in list(self.folder.wanted()):
            self.folder.unwant(name)
        supervisor.stop(self.folder)

    def log_tail(self, name: str, lines: int = 12) -> str:
        try:
            return "\n".join(self.folder.log(name).read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return "(no log yet)"

    def _ensure_admin(self) -> None:
        marker = self.root / "core" / "admin-made"
        if marker.exists():
            return
        words = [program("gpuaas-core"), "admin", ADMIN, "--password-stdin"]
        password = self.credentials.admin_password.encode()
        done = subprocess.run(
            words, input=password, env=os.environ | self.core_env, capture_output=True, timeout=180, check=False
        )
        if done.returncode != 0:
            raise LabError(f"The first administrator could not be made: {done.stderr.decode()[-500:]}", "make logs")
        marker.touch()

    def _check_port(self) -> None:
        if self.folder.process("core"):
            return
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                raise LabError(f"Port {self.port} is in use by another program.", "make up PORT=8090")


def program(name: str) -> str:
    """Return the path of a program in this Python environment, independent of PATH."""
    return str(Path(sys.executable).parent / name)


def wait_for(holds: Callable[[], bool], timeout: float, otherwise: Callable[[], str]) -> None:
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise LabError(otherwise(), "Look at `make logs`; `make down` and `make up` start afresh.")
        time.sleep(0.05)


def _answers(client: Client) -> bool:
    try:
        return bool(client.about().version)
    except GpuaasError:
        return False
