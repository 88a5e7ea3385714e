"""Console sessions. A session is an opaque token that the browser keeps in an HttpOnly cookie.

A browser sends cookies by itself, also for requests caused by other sites. So a request that changes something must
carry the session's CSRF token in a header, and come from the console's own origin. Bearer tokens are not affected,
and take precedence when both are sent.
"""

import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Literal
from urllib.parse import quote, urlsplit

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import Connection

from ..kit.correlation import current
from ..kit.problems import Problem
from ..kit.vault import Vault
from .request_log import seen_in

PREFIX = "gpc_"  # console tokens are not valid as bearer tokens, nor the other way round
HEADER = "x-csrf-token"
SAFE = frozenset({"GET", "HEAD"})
RENEW_MS = 60_000
REFUSED_S = 60
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CsrfTokenWrong(Problem):
    status, code, title = 403, "csrf_token_wrong", "Invalid CSRF token"
    way_out = "Send the session's CSRF token (GET /v1/auth/session) as X-CSRF-Token, or use a bearer token."


class CsrfOriginRefused(Problem):
    status, code, title = 403, "csrf_origin_refused", "Cross-site request rejected"
    way_out = "Send the request from the console's own address, or use a bearer token."


class Renewals:
    """Extends a console session while it is used, at most once a minute per core process. Idle sessions expire."""

    def __init__(self, renew: Callable[[Connection, str, int], None]) -> None:
        self.renew = renew
        self._last: dict[str, int] = {}

    def due(self, token: str, now: int) -> bool:
        name = hashlib.sha256(token.encode()).hexdigest()
        if now - self._last.get(name, 0) < RENEW_MS:
            return False
        if len(self._last) > 10_000:
            self._last.clear()
        self._last[name] = now
        return True


def plain(request: Request) -> bool:
    """Whether the request uses plain http to a loopback address. For all other requests the cookies are Secure."""
    return request.url.scheme == "http" and request.url.hostname in LOOPBACK


def cookie_name(request: Request, what: str) -> str:
    return f"gpuaas-{what}" if plain(request) else f"__Host-gpuaas-{what}"


def cookie_token(request: Request) -> str | None:
    token = request.cookies.get(cookie_name(request, "session"), "")
    return token if token.startswith(PREFIX) else None


def csrf_token(vault: Vault, token: str) -> str:
    return vault.mac(f"csrf:{token}")


def give(response: Response, request: Request, vault: Vault, token: str, lives_s: int) -> None:
    set_cookie(response, request, "session", token, lives_s)
    set_cookie(response, request, "csrf", csrf_token(vault, token), lives_s, script=True, same_site="strict")


def take_back(response: Response, request: Request) -> None:
    for what in ("session", "csrf"):
        set_cookie(response, request, what, "", 0)


def set_cookie(
    response: Response,
    request: Request,
    what: str,
    value: str,
    lives_s: int,
    *,
    script: bool = False,
    same_site: Literal["lax", "strict"] = "lax",
) -> None:
    response.set_cookie(
        cookie_name(request, what),
        value,
        max_age=lives_s,
        path="/",
        secure=not plain(request),
        httponly=not script,
        samesite=same_site,
    )
    response.headers["Cache-Control"] = "no-store"


def navigates(request: Request) -> bool:
    """Whether a browser navigates with this request (it accepts HTML), so that a person sees the response as a page."""
    return "text/html" in request.headers.get("accept", "")


def refused(request: Request, problem: Problem) -> Response:
    """Return a redirect to the sign-in page, with the error in a cookie, because an error in the URL could be
    forged."""
    correlation = current.get()
    shown = {"status": problem.status, "code": problem.code, "detail": problem.detail[:600], "way_out": problem.exit}
    shown |= {"correlation_id": correlation.correlation_id if correlation else None}
    if seen := seen_in(request.scope):
        seen.problem = {"code": problem.code, "detail": problem.detail[:2000], "way_out": problem.exit[:2000]}
    response = RedirectResponse("/sign-in", 303)
    set_cookie(response, request, "refused", quote(json.dumps(shown)), REFUSED_S, script=True)
    return response


def check(request: Request, vault: Vault, public_url: str, token: str) -> None:
    """Check that the console sent this request with a session cookie: raise an error if the origin or the CSRF token is
    wrong. GET and HEAD requests are not checked."""
    if request.method in SAFE:
        return
    check_origin(request, public_url, required=True)
    sent = request.headers.get(HEADER, "")
    if not hmac.compare_digest(sent.encode(), csrf_token(vault, token).encode()):
        raise CsrfTokenWrong("The X-CSRF-Token header is missing or belongs to another session.")


def check_origin(request: Request, public_url: str, *, required: bool) -> None:
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = site in (None, "same-origin") and (origin is None or _netloc(origin) in _own_origins(request, public_url))
    if not own or (required and site is None and origin is None):
        raise CsrfOriginRefused("The request's origin is another site or missing.")


def _own_origins(request: Request, public_url: str) -> set[str]:
    return {request.headers.get("host", ""), _netloc(public_url)} - {""}


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""
