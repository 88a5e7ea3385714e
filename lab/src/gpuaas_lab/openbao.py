"""Runs a real OpenBao server for tests and labs. Its store is on disk, so that it can be stopped and restarted."""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hvac


class Bao:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, _free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._unseal_key, self.root_token = "", ""

    def start(self) -> None:
        (self.folder / "raft").mkdir(parents=True, exist_ok=True)
        config = self.folder / "bao.hcl"
        config.write_text(
            f'storage "raft" {{ path = "{self.folder}/raft"  node_id = "one" }}\n'
            f'listener "tcp" {{ address = "127.0.0.1:{self.port}"  tls_disable = true }}\n'
            f'api_addr = "{self.address}"\ncluster_addr = "http://127.0.0.1:{_free_port()}"\n'
        )
        with (self.folder / "log").open("ab") as log:
            command = [str(Path(sys.executable).parent / "bao"), "server", f"-config={config}"]
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        client = hvac.Client(url=self.address, timeout=30)
        _until(lambda: client.sys.is_initialized() in (True, False))
        if not self._unseal_key:
            made = client.sys.initialize(secret_shares=1, secret_threshold=1)
            self._unseal_key, self.root_token = made["keys"][0], made["root_token"]
        client.sys.submit_unseal_key(self._unseal_key)
        client.token = self.root_token
        _until(lambda: client.sys.read_health_status(method="GET")["sealed"] is False)
        _until(lambda: isinstance(client.sys.list_mounted_secrets_engines(), dict))

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def prepare(self) -> dict[str, str]:
        """Set up what an operator sets up once: the transit key, a policy for only that key, an AppRole for the
        core."""
        client = hvac.Client(url=self.address, token=self.root_token, timeout=30)
        client.sys.enable_secrets_engine("transit")
        client.secrets.transit.create_key("gpuaas", key_type="aes256-gcm96")
        rules = 'path "transit/encrypt/gpuaas" { capabilities = ["update"] }\n'
        rules += 'path "transit/decrypt/gpuaas" { capabilities = ["update"] }\n'
        rules += 'path "transit/keys/gpuaas" { capabilities = ["read"] }\n'
        rules += 'path "transit/keys/gpuaas/*" { capabilities = ["update"] }\n'
        client.sys.create_or_update_policy("gpuaas-core", rules)
        client.sys.enable_auth_method("approle")
        client.auth.approle.create_or_update_approle("core", token_policies=["gpuaas-core"])
        role = client.auth.approle.read_role_id("core")["data"]["role_id"]
        secret = client.auth.approle.generate_secret_id("core")["data"]["secret_id"]
        kept = self.folder / "secret-id"
        kept.write_text(secret)
        kept.chmod(0o600)
        return {
            "GPUAAS_CORE_CUSTODY": "openbao",
            "GPUAAS_CORE_OPENBAO_ADDRESS": self.address,
            "GPUAAS_CORE_OPENBAO_ROLE_ID": role,
            "GPUAAS_CORE_OPENBAO_SECRET_ID_FILE": str(kept),
        }


@contextlib.contextmanager
def bao() -> Iterator[Bao]:
    with tempfile.TemporaryDirectory(prefix="bao-") as folder:
        server = Bao(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _until(answers: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if answers():
                return
        except Exception as error:
            if time.monotonic() > deadline:
                raise TimeoutError("the custody server did not come up") from error
        time.sleep(0.1)
        if time.monotonic() > deadline:
            raise TimeoutError("the custody server did not come up")
