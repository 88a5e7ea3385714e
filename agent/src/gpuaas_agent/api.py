"""HTTP client of the platform: plain urllib, a time limit per call, access tokens requested and renewed automatically.

The host's clock may be wrong: the offset to the platform's clock is read from the Date header and used in assertions.
"""

import http.client
import json
import secrets
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from gpuaas_agent import __version__
from gpuaas_agent.errors import Refused, TokenInvalid, Unreachable

if TYPE_CHECKING:
    from gpuaas_agent.renewal import Identity

TIMEOUT_S = 15
LARGEST_ANSWER = 1 << 20
CHUNK = 1 << 20
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Api:
    """The client of one platform. `who` signs the sign-in requests and handles a rejected key; None if the host is not
    enrolled."""

    def __init__(self, base: str, ca_file: str = "", who: "Identity | None" = None) -> None:
        self.base = base.rstrip("/")
        self.who = who
        self._ssl = ssl.create_default_context(cafile=ca_file or None) if base.startswith("https") else None
        self._token: tuple[str, float] = ("", 0.0)
        self._skew = 0.0
        self._lock = threading.Lock()

    def post(self, path: str, body: dict[str, Any], *, signed_in: bool = True, wait_s: float = 0) -> Any:
        headers = {"Content-Type": "application/json", "Idempotency-Key": secrets.token_hex(16)}
        return self._call("POST", path, json.dumps(body).encode(), headers, signed_in, TIMEOUT_S + wait_s)

    def download(self, path: str) -> Iterator[bytes]:
        """Download a file from the platform and yield its content in chunks. Redirects are not followed."""
        headers = {"User-Agent": f"gpuaas-agent/{__version__}", "Authorization": f"Bearer {self._access_token()}"}
        request = urllib.request.Request(self.base + path, None, headers)  # noqa: S310
        opener = urllib.request.build_opener(_NoRedirect(), *self._tls())
        try:
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                while chunk := answer.read(CHUNK):
                    yield chunk
        except urllib.error.HTTPError as error:
            raise _refusal(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(self.base, str(error) or type(error).__name__) from error

    def get(self, path: str, *, wait_s: float = 0) -> Any:
        return self._call("GET", path, None, {}, True, TIMEOUT_S + wait_s)

    def _call(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], signed_in: bool, timeout: float
    ) -> Any:
        for attempt in (1, 2):
            authorization = {"Authorization": f"Bearer {self._access_token()}"} if signed_in else {}
            try:
                return self._send(method, path, body, {**headers, **authorization}, timeout)
            except Refused as refused:
                # The platform no longer accepts the token: get a new one, once.
                if not signed_in or refused.status != 401 or attempt == 2:
                    raise
                self._token = ("", 0.0)
        raise AssertionError("unreachable")

    def _access_token(self) -> str:
        with self._lock:
            token, renew_at = self._token
            if time.monotonic() < renew_at:
                return token
            assert self.who is not None
            try:
                answer = self._show(self.who.sign(self.now()))
            except Refused as refused:
                if not self.who.mend(refused, self):
                    raise
                answer = self._show(self.who.sign(self.now()))
            self._token = (answer["access_token"], time.monotonic() + answer["expires_in"] * 2 / 3)
            return self._token[0]

    def renew_identity(self) -> None:
        """Renew the key and drop the access token, so that the next call signs in with the new key."""
        assert self.who is not None
        with self._lock:
            self.who.renew(self)
            self._token = ("", 0.0)

    def answer_challenge(self, assertion: str) -> None:
        self._show(assertion)

    def now(self) -> float:
        """Return the platform's time in seconds since 1970, estimated from the Date headers of its answers."""
        return time.time() + self._skew

    def _show(self, assertion: str) -> Any:
        form = {"grant_type": "client_credentials", "client_assertion_type": ASSERTION_TYPE}
        form["client_assertion"] = assertion
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send("POST", "/v1/token", urlencode(form).encode(), headers, TIMEOUT_S)

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str], timeout: float) -> Any:
        own = {"User-Agent": f"gpuaas-agent/{__version__}", "X-Correlation-Id": f"agent-{secrets.token_hex(8)}"}
        # The scheme was checked when the configuration was read.
        request = urllib.request.Request(self.base + path, body, {**own, **headers}, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self._ssl) as answer:  # noqa: S310
                self._learn_time(answer.headers.get("Date"))
                data = answer.read(LARGEST_ANSWER)
                return json.loads(data) if data else None
        except urllib.error.HTTPError as error:
            self._learn_time(error.headers.get("Date"))
            raise _refusal(error) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(self.base, str(error) or type(error).__name__) from error

    def _tls(self) -> list[urllib.request.BaseHandler]:
        return [urllib.request.HTTPSHandler(context=self._ssl)] if self._ssl else []

    def _learn_time(self, date: str | None) -> None:
        try:
            skew = parsedate_to_datetime(date).timestamp() - time.time() if date else 0.0
        except ValueError:
            return
        # The header has whole seconds, so ignore smaller differences.
        self._skew = skew if abs(skew) > 3 else 0.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        return None


def _refusal(error: urllib.error.HTTPError) -> Refused | Unreachable:
    try:
        problem = json.loads(error.read(LARGEST_ANSWER))
        code, detail = str(problem.get("code", "")), str(problem.get("detail") or problem.get("title") or "")
        way_out = str(problem.get("way_out", ""))
    except (OSError, ValueError, AttributeError):
        problem, code, detail, way_out = {}, "", error.reason or "no explanation", ""
    if error.code in (408, 425, 429) or error.code >= 500:
        return Unreachable(error.url or "the platform", f"{error.code} {detail}")
    kind = TokenInvalid if code == "enrolment_token_invalid" else Refused
    return kind(error.code, code, detail, way_out, problem)
