"""Two OpenID providers for the tests: a real one (npm oidc-provider), and one that signs whatever a test tells it to."""

import contextlib
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2
from joserfc import jwt
from joserfc.jwk import RSAKey

from core.tests.support.served import free_port

FOLDER = Path(__file__).parents[1] / "oidc"
SECRET = "s3cret-of-the-client"


@contextlib.contextmanager
def real_provider(callback: str) -> Iterator[str]:
    """`make node-tools` installs it; without it the tests fail, they do not skip."""
    assert (FOLDER / "node_modules").exists(), "run `make node-tools` first"
    port = free_port()
    process = subprocess.Popen(
        ["node", "server.mjs", str(port), callback], cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 120
        while True:
            with contextlib.suppress(httpx2.TransportError):
                httpx2.get(f"http://127.0.0.1:{port}/.well-known/openid-configuration", timeout=2)
                break
            assert process.poll() is None, "the provider did not start"
            assert time.monotonic() < deadline, "the provider did not answer within two minutes"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def sign_in_there(start: str, login: str) -> str:
    """Through the provider's own pages, as a person would; returns where it sends the browser in the end."""
    async with httpx2.AsyncClient(follow_redirects=False, timeout=60) as web:
        answer = await web.get(start)
        for _ in range(12):
            if answer.status_code in (302, 303):
                where = urljoin(str(answer.url), answer.headers["location"])
                if "/v1/auth/oidc/callback" in where:
                    return where
                answer = await web.get(where)
                continue
            form = re.search(r'action="([^"]+)"', answer.text)
            prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
            assert form, answer.text
            assert prompt, answer.text
            sent = {"prompt": prompt[1], "login": login, "password": "any"}
            answer = await web.post(urljoin(str(answer.url), form[1]), data=sent)
    raise AssertionError("the provider never sent the browser back")


class Forger:
    """A provider under the test's control: `token` makes the ID token from the nonce it was asked with."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.published = [self.key]
        self.nonce = ""
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "first"}
        self.raw: str | None = None
        self.asked: list[str] = []
        self.names_itself = ""
        forger = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                forger.asked.append(self.path)
                self._answer(forger.metadata() if "well-known" in self.path else forger.jwks())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._answer({"access_token": "x", "token_type": "Bearer", "id_token": forger.token()})

            def _answer(self, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def metadata(self) -> dict[str, Any]:
        ends = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "jwks"}
        return {"issuer": self.names_itself or self.issuer} | {k: f"{self.issuer}/{v}" for k, v in ends.items()}

    def jwks(self) -> dict[str, Any]:
        return {"keys": [key.as_dict(private=False) for key in self.published]}

    def good(self, now: int) -> dict[str, Any]:
        who = {"sub": "boss-there", "email": "boss@acme.example", "email_verified": True}
        return {"iss": self.issuer, "aud": "public", "iat": now, "exp": now + 300, "nonce": self.nonce} | who

    def token(self) -> str:
        return self.raw or jwt.encode(self.header, self.claims, self.key, algorithms=[self.header["alg"]])


@contextlib.contextmanager
def forger() -> Iterator[Forger]:
    one = Forger()
    try:
        yield one
    finally:
        one.server.shutdown()
        one.server.server_close()
