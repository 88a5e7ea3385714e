"""A small platform to talk to (real HTTP on this machine), and a host whose root is a temporary folder.

The platform signs real SSH certificates, checks every assertion, and can be told to fail in the ways that hurt: to lose
an answer after the work is done, to be down, to refuse.
"""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    SSHCertificateBuilder,
    SSHCertificateType,
    load_ssh_public_key,
)
from gpuaas_agent.places import Places
from gpuaas_agent.sshd import SSHD, Sshd


class FakePlatform:
    """Answers like the core. Everything it saw and holds is an attribute."""

    def __init__(self, listen: str = "127.0.0.1") -> None:
        self.user_ca, self.host_ca = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
        self.tokens: dict[str, tuple[str, str] | None] = {"one-time-token-0123456789": None}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.seen: list[str] = []
        self.facts_sent = 0
        self.jtis: set[str] = set()
        self.lose_answers: set[str] = set()
        self.fail_with: dict[str, int] = {}
        self.clock_offset = 0.0
        self.access = "access-1"
        self.changed = threading.Condition()
        self._serve(listen, 0)

    def _serve(self, listen: str, port: int) -> None:
        handler = type("Handler", (_Handler,), {"platform": self})
        self.server = ThreadingHTTPServer((listen, port), handler)
        self.server.daemon_threads = True
        self.address = (listen, self.server.server_port)
        self.url = f"http://{listen}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def down(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def up(self) -> None:
        self._serve(*self.address)

    def node(self) -> dict[str, Any]:
        (node,) = self.nodes.values()
        return node

    def allow(self, *principals: str) -> int:
        """A new generation of trust for the one node."""
        with self.changed:
            node = self.node()
            node["principals"] = list(principals)
            node["generation"] += 1
            self.changed.notify_all()
            return node["generation"]

    def revoke(self, *serials: int) -> int:
        """A new generation that says so."""
        with self.changed:
            self.node()["revoked"] = list(serials)
            self.node()["generation"] += 1
            self.changed.notify_all()
            return self.node()["generation"]

    def trust(self, node: dict[str, Any]) -> dict[str, Any]:
        return {
            "generation": node["generation"],
            "user_ca_public_keys": [public_line(self.user_ca)],
            "principals": {"root": node["principals"]},
            "host_certificate": node["certificate"],
            "host_ca_public_key": public_line(self.host_ca),
            "login_user": "root",
            "revoked_serials": [str(serial) for serial in node.get("revoked", [])],
        }

    def user_certificate(self, key_line: bytes, principal: str, life_s: int = 300, **more: Any) -> str:
        return sign(self.user_ca, key_line, principal, SSHCertificateType.USER, life_s, **more)

    def known_hosts_line(self) -> str:
        """Trust the authority, not a key: what a client of the platform is given."""
        return f"@cert-authority * {public_line(self.host_ca)}\n"

    # -- the routes

    def enrol(self, body: dict[str, Any]) -> tuple[int, Any]:
        who = (json.dumps(body["public_jwk"]), body["facts"]["machine_id"])
        if body["token"] not in self.tokens or self.tokens[body["token"]] not in (None, who):
            return 401, {"code": "enrolment_token_invalid", "detail": "This token was used.", "way_out": "Make one."}
        if self.tokens[body["token"]] is None:
            self.tokens[body["token"]] = who
            node_id = f"node_{len(self.nodes) + 1}"
            line = body["ssh_host_public_key"].encode()
            certificate = sign(self.host_ca, line, node_id, SSHCertificateType.HOST, 86400)
            self.nodes[node_id] = {"id": node_id, "who": who, "certificate": certificate, "generation": 1, "applied": 0}
            self.nodes[node_id] |= {"principals": [], "beats": 0, "address": body["address"], "facts": body["facts"]}
        node = next(node for node in self.nodes.values() if node["who"] == who)
        return 200, {"node_id": node["id"], "issuer": "gpuaas", "trust": self.trust(node)}

    def token(self, form: dict[str, list[str]]) -> tuple[int, Any]:
        head, claims, signature = form["client_assertion"][0].split(".")
        said = json.loads(unb64(claims))
        jwk = json.loads(self.nodes[said["iss"]]["who"][0])
        Ed25519PublicKey.from_public_bytes(unb64(jwk["x"])).verify(unb64(signature), f"{head}.{claims}".encode())
        now = time.time() + self.clock_offset
        fresh = (
            said["jti"] not in self.jtis and said["iat"] - 5 <= now <= said["exp"] and said["exp"] - said["iat"] <= 60
        )
        self.jtis.add(said["jti"])
        if not fresh or said["aud"] != "gpuaas":
            return 401, {"code": "unauthenticated", "detail": "The assertion is not valid now."}
        return 200, {"access_token": self.access, "token_type": "Bearer", "expires_in": 900}

    def poll(self, node: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        node["beats"] += 1
        node["applied"] = max(node["applied"], body["applied_generation"])
        node["facts"] = body.get("facts") or node["facts"]
        self.facts_sent += "facts" in body
        with self.changed:
            self.changed.wait_for(lambda: node["generation"] > body["applied_generation"], min(body["wait_s"], 2))
            if node["generation"] <= body["applied_generation"]:
                return 204, None
            return 200, {"trust": self.trust(node), "task": None, "renew_identity": False}


class _Handler(BaseHTTPRequestHandler):
    platform: FakePlatform

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer("POST", data)

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def _answer(self, method: str, data: bytes) -> None:
        path = urlsplit(self.path).path
        kind = path.rsplit("/", 1)[1]
        self.platform.seen.append(f"{method} {path}")
        status, body = self._route(kind, path, data)
        if kind in self.platform.lose_answers:
            self.platform.lose_answers.discard(kind)
            self.close_connection = True
            return
        self._send(status, body)

    def _route(self, kind: str, path: str, data: bytes) -> tuple[int, Any]:
        platform = self.platform
        if kind in platform.fail_with:
            return platform.fail_with[kind], {"code": "test", "detail": "Told to fail.", "way_out": "None."}
        if kind == "enrol":
            return platform.enrol(json.loads(data))
        if kind == "token":
            return platform.token(parse_qs(data.decode()))
        node = platform.nodes.get(path.split("/")[3])
        if node is None or self.headers.get("Authorization") != f"Bearer {platform.access}":
            return 401, {"code": "unauthenticated", "detail": "Unknown token."}
        assert kind == "poll", path
        return platform.poll(node, json.loads(data))

    def _send(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response_only(status)
        self.send_header("Date", self.date_time_string(int(time.time() + self.platform.clock_offset)))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class FakeSshd:
    """Stands for the programs the agent calls; `refuse` makes the n-th `sshd -t` fail."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.refuse: set[int] = set()

    def __call__(self, argv: Any) -> tuple[int, str]:
        self.calls.append(list(argv))
        tests = sum(1 for call in self.calls if call[:2] == [SSHD, "-t"])
        refused = list(argv[:2]) == [SSHD, "-t"] and tests in self.refuse
        return (255, "Bad configuration option") if refused else (0, "port 22\n")

    @property
    def reloads(self) -> int:
        return sum(1 for call in self.calls if call[0] == "systemctl")


def sign(
    ca: Ed25519PrivateKey,
    line: bytes,
    principal: str,
    kind: SSHCertificateType,
    life_s: int,
    *,
    key_id: str = "op_1/1",
    serial: int = 1,
) -> str:
    key, now = load_ssh_public_key(line), int(time.time())
    assert isinstance(key, Ed25519PublicKey)
    builder = SSHCertificateBuilder().public_key(key).serial(serial).type(kind).key_id(key_id.encode())
    builder = builder.valid_principals([principal.encode()]).valid_after(now - 60).valid_before(now + life_s)
    if kind is SSHCertificateType.USER:
        builder = builder.add_extension(b"permit-pty", b"")
    return builder.sign(ca).public_bytes().decode()


def public_line(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def private_text(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def platform() -> Iterator[FakePlatform]:
    fake = FakePlatform()
    yield fake
    fake.down()


@pytest.fixture(scope="module")
def start_platform() -> Iterator[Callable[[str], FakePlatform]]:
    """A platform on another address of this machine (for real hosts)."""
    started: list[FakePlatform] = []

    def start(listen: str) -> FakePlatform:
        started.append(FakePlatform(listen))
        return started[-1]

    yield start
    for fake in started:
        fake.down()


@pytest.fixture
def host_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


@pytest.fixture
def places(tmp_path: Path, host_key: Ed25519PrivateKey) -> Places:
    """A host that has booted once."""
    found = Places(tmp_path)
    for path, text in (
        (found.host_public_key, public_line(host_key) + " root@host\n"),
        (tmp_path / "etc/machine-id", "0123456789abcdef\n"),
        (tmp_path / "etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n"),
        (tmp_path / "proc/meminfo", "MemTotal:       2048000 kB\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return found


@pytest.fixture
def programs() -> FakeSshd:
    return FakeSshd()


@pytest.fixture
def sshd(places: Places, programs: FakeSshd) -> Sshd:
    return Sshd(places, programs)


@pytest.fixture
def configured(places: Places, platform: FakePlatform) -> Places:
    """… and the installer wrote the config with a one-time token."""
    places.config.parent.mkdir(parents=True, exist_ok=True)
    places.config.write_text(json.dumps({"api": platform.url, "token": "one-time-token-0123456789", "node_name": "a"}))
    return places


@pytest.fixture
def view(platform: FakePlatform, host_key: Ed25519PrivateKey) -> dict[str, Any]:
    """What the platform would send to this host."""
    certificate = sign(platform.host_ca, public_line(host_key).encode(), "node_1", SSHCertificateType.HOST, 3600)
    return platform.trust({"generation": 7, "principals": ["alloc_1", "alloc_2"], "certificate": certificate})
