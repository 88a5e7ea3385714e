"""Middleware that serves the files of the web console beside the API. The files are read once, kept in memory, and sent
with a Content-Security-Policy that allows only the console's own scripts.

API paths are passed on to the API. `/` returns the console's page to every client. A browser that navigates to any
other path which is not a file also gets the page, and the page handles the path. All other requests are passed on, so
that unknown paths get the API's 404.
"""

import gzip
import hashlib
import mimetypes
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

OF_THE_API = re.compile(r"/(v1|healthz|readyz|metrics)(/.*)?")
NONCE = b"__CSP_NONCE__"
LARGE_ENOUGH = 1024
FOREVER, ASK_AGAIN = "public, max-age=31536000, immutable", "no-cache"
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NOT_BUILT = b"<!doctype html><title>GPUaaS</title><p>The console is not built. Run <code>make console</code>.\n"


@dataclass(frozen=True)
class File:
    content: bytes
    packed: bytes | None
    media: str
    etag: str
    cache: str


class Console:
    def __init__(self, app: ASGIApp, folder: Path) -> None:
        self.app = app
        self.files = _read(folder)
        index = self.files.pop("/index.html", None)
        self.page = index.content if index else NOT_BUILT

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer(scope) if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else None
        await (answer or self.app)(scope, receive, send)

    def _answer(self, scope: Scope) -> Response | None:
        path = scope["path"]
        if OF_THE_API.fullmatch(path):
            return None
        headers = Headers(scope=scope)
        if file := self.files.get(path):
            return _file(file, headers)
        return self._navigation() if path == "/" or _navigates(headers) else None

    def _navigation(self) -> Response:
        nonce = secrets.token_urlsafe(18)
        page = self.page.replace(NONCE, nonce.encode())
        headers = ALWAYS | {"Content-Security-Policy": policy(nonce), "Cache-Control": "no-store"}
        return Response(page, headers=headers, media_type="text/html")


def policy(nonce: str) -> str:
    """Return the Content-Security-Policy of the page: scripts are allowed from this origin only, styles from this
    origin or with the nonce of the page."""
    rules = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": f"'self' 'nonce-{nonce}'",
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "manifest-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def _navigates(headers: Headers) -> bool:
    mode = headers.get("sec-fetch-mode")
    return mode == "navigate" if mode else "text/html" in headers.get("accept", "")


def _file(file: File, asked: Headers) -> Response:
    headers = ALWAYS | {"ETag": file.etag, "Cache-Control": file.cache, "Vary": "Accept-Encoding"}
    if asked.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if file.packed is not None and "gzip" in asked.get("accept-encoding", ""):
        return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media)
    return Response(file.content, headers=headers, media_type=file.media)


def _read(folder: Path) -> dict[str, File]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return {f"/{path.relative_to(folder).as_posix()}": _load(path) for path in paths}


def _load(path: Path) -> File:
    content = path.read_bytes()
    media = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    packs = len(content) > LARGE_ENOUGH and (media.startswith("text/") or media.endswith(("javascript", "svg+xml")))
    packed = gzip.compress(content, 6, mtime=0) if packs else None
    cache = FOREVER if path.parent.name == "assets" else ASK_AGAIN  # the build names assets by their content
    return File(content, packed, media, f'"{hashlib.sha256(content).hexdigest()[:32]}"', cache)
