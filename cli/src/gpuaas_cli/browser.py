"""Sign-in with a browser: the identity provider redirects to this computer with an authorization code, or shows the
code.

The code is useless without the PKCE verifier, which this process keeps until it exchanges the code.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from . import failures
from .failures import CliError

PATIENCE_S = 300


def sign_in(api: str, provider: str, *, paste: bool) -> tuple[str, str]:
    """Let the person sign in with a browser. Returns the authorization code and its PKCE verifier. Raises CliError if
    the sign-in takes longer than five minutes."""
    verifier = secrets.token_urlsafe(32)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    start = f"{api}/v1/auth/oidc/{provider}/start"
    if paste:
        print(f"Open in a browser:\n\n  {start}?{urlencode({'challenge': challenge})}\n", file=sys.stderr)
        print("Code: ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip(), verifier
    with _Landing() as landing:
        address = f"{start}?{urlencode({'challenge': challenge, 'port': landing.server_port})}"
        print(f"Opening your browser; if nothing happens, open:\n\n  {address}\n", file=sys.stderr)
        webbrowser.open(address)
        return landing.wait(), verifier


class _Landing(HTTPServer):
    """A local HTTP server that receives the authorization code when the browser is redirected to it."""

    timeout = 1.0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.code = ""

    def wait(self) -> str:
        for _ in range(PATIENCE_S):
            self.handle_request()
            if self.code:
                return self.code
        raise CliError(
            "The sign-in was not completed within five minutes.", "Try again, or add --paste.", failures.SIGN_IN
        )


class _Handler(BaseHTTPRequestHandler):
    server: _Landing  # type: ignore[assignment]

    def do_GET(self) -> None:
        self.server.code = (parse_qs(urlsplit(self.path).query).get("code") or [""])[0]
        body = b"Signed in. You can close this page." if self.server.code else b"Not yet."
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, since the code in the request is a secret."""
