"""Real servers that artifacts come from, on this machine and for one test session: Debian's docker-registry, SeaweedFS
with its S3 gateway, and a small server that lies on request.
"""

import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

WEED = Path(sys.executable).with_name("weed")
REGISTRY_TOKEN = "registry-token"
S3_KEYS = {"kind": "s3", "access_key_id": "AKIATESTS", "secret_access_key": "tests-secret-key", "region": "eu-test-1"}


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(1)  # SeaweedFS takes its time, and its data is worth nothing
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(process: subprocess.Popen[bytes], ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(httpx2.HTTPError):
            if ready():
                return
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)


def ports(number: int) -> list[int]:
    """Free at this moment, all of them at once."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


@dataclass
class Registry:
    """Wants an Authorization header, as its `silly` access controller does; which one it does not mind."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def push(self, repository: str, *layers: bytes) -> tuple[str, list[str]]:
        """The digests of the manifest and of its layers."""
        config = self._blob(repository, b"{}")
        described = [self._blob(repository, layer) for layer in layers]
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": described,
        }
        body = json.dumps(manifest).encode()
        headers = {"Content-Type": manifest["mediaType"]} | self._auth()
        put = httpx2.put(f"{self.url}/v2/{repository}/manifests/latest", content=body, headers=headers)
        assert put.status_code == 201, put.text
        return put.headers["docker-content-digest"], [one["digest"] for one in described]

    def _blob(self, repository: str, content: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        where = httpx2.post(f"{self.url}/v2/{repository}/blobs/uploads/", headers=self._auth()).headers["location"]
        put = httpx2.put(
            where, params={"digest": digest} | dict(httpx2.URL(where).params), content=content, headers=self._auth()
        )
        assert put.status_code == 201, put.text
        return {"mediaType": "application/vnd.test.layer.v1.tar", "digest": digest, "size": len(content)}

    def spoil(self, digest: str, content: bytes) -> None:
        """Behind the registry's back: it goes on naming the digest."""
        name = digest.removeprefix("sha256:")
        (self.folder / f"docker/registry/v2/blobs/sha256/{name[:2]}/{name}/data").write_bytes(content)

    def _auth(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {REGISTRY_TOKEN}"}


@contextlib.contextmanager
def registry(folder: Path) -> Iterator[Registry]:
    (port,) = ports(1)
    storage, log, config = folder / "registry", folder / "registry.log", folder / "registry.yml"
    config.write_text(
        "version: 0.1\nlog: {level: error}\n"
        f"storage: {{filesystem: {{rootdirectory: {storage}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}', secret: tests}}\n"
        "auth: {silly: {realm: tests, service: tests}}\n"
    )
    with _running(["docker-registry", "serve", str(config)], log) as process:
        found = Registry(port, storage, process)
        _wait(process, lambda: httpx2.get(f"{found.url}/v2/").status_code == 401, log)
        yield found


@dataclass
class S3:
    port: int
    filer: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/models"

    def put(self, name: str, content: bytes) -> bool:
        """Past the gateway, into the bucket."""
        where = f"http://127.0.0.1:{self.filer}/buckets/models/{name}"
        return httpx2.post(where, files={"file": content}, timeout=5).is_success


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[S3]:
    names = ["master", "volume", "filer", "s3"]
    numbers = ports(8)
    identity = {
        "name": "core",
        "credentials": [{"accessKey": S3_KEYS["access_key_id"], "secretKey": S3_KEYS["secret_access_key"]}],
    }
    config, log, data = folder / "s3.json", folder / "weed.log", folder / "weed"
    config.write_text(json.dumps({"identities": [identity | {"actions": ["Read:models"]}]}))
    data.mkdir()
    command = [str(WEED), "-logtostderr=true", "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += ["-filer", "-s3", f"-s3.config={config}", "-master.telemetry=false", "-volume.max=4"]
    command += ["-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    for name, port, grpc in zip(names, numbers[:4], numbers[4:], strict=True):
        command += [f"-{name}.port={port}", f"-{name}.port.grpc={grpc}"]
    with _running(command, log) as process:
        found = S3(numbers[3], numbers[2], process)
        _wait(process, lambda: found.put("ready", b"yes") and httpx2.get(found.url, timeout=2).status_code == 403, log)
        yield found


class Liar:
    """Answers with what a test says; remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.server: Any = None

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def says(self, path: str, status: int = 200, body: bytes = b"", **headers: str) -> None:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            sent = {"Content-Length": str(len(body))} | {n.replace("_", "-"): v for n, v in headers.items()}
            for name, value in sent.items():
                request.send_header(name, value)
            request.end_headers()
            request.wfile.write(body)

        self.answers[path] = answer


@contextlib.contextmanager
def liar() -> Iterator[Liar]:
    found = Liar()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, dict(self.headers.items())))
            found.answers.get(self.path, lambda request: request.send_error(404))(self)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None: ...

    found.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        found.server.server_close()
        thread.join()


def random_content(size: int) -> bytes:
    return os.urandom(size)
