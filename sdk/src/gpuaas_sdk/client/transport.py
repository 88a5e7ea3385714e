"""Sends Requests and retries them. `Transport` is blocking; transport_async.py has its asyncio counterpart. clients.py
uses both.

`Exchange` has what both share: headers, interpretation of the answer, and when to retry. A retry always carries the
same idempotency key. Only temporary failures are retried: no connection, 502, 503, 504, or an earlier attempt with the
same key that is still in progress.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import NoneType
from typing import Any, Generic, TypeVar

import httpx2
import msgspec

from .auth import Auth
from .backoff import Backoff, now
from .correlation import current_correlation_id, new_correlation_id
from .errors import ApiError, BadAnswer, ConnectionFailed, GpuaasError, Unauthenticated, error_for, problem_from
from .request import Request

T = TypeVar("T")
TRY_AGAIN = {502, 503, 504}
IN_FLIGHT = "idempotency_in_flight"
MAX_TRIES = 5
USER_AGENT = "gpuaas-sdk/0.1.0"


class Exchange(Generic[T]):
    """One Request in progress: its HTTP form, and how each outcome is handled."""

    def __init__(self, request: Request[T], auth: Auth, api: str) -> None:
        self.request, self._auth, self._api = request, auth, api
        self.correlation_id = current_correlation_id() or new_correlation_id()
        self._backoff = Backoff(base=0.3, cap=4.0)
        self._renewed = False
        self._token: str | None = None

    def arguments(self, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the arguments for httpx2.Client.request. They are built for every attempt, since the token may have
        changed."""
        request = self.request
        arguments: dict[str, Any] = {
            "method": request.method,
            "url": request.path,
            "params": request.query or None,
            "headers": {**self._headers(), **request.headers, **(headers or {})},
            "timeout": httpx2.Timeout(request.patience_s, connect=min(5.0, request.patience_s)),
        }
        if request.form is not None:
            arguments["data"] = request.form
        elif request.body is not None:
            arguments["content"] = msgspec.json.encode(request.body)
        return arguments

    def _headers(self) -> dict[str, str]:
        headers = {"X-Correlation-Id": self.correlation_id, "Accept": "application/json, application/problem+json"}
        headers |= self.request.headers
        if self.request.body is not None:
            headers["Content-Type"] = "application/json"
        if self.request.anonymous:
            return headers
        if self.request.method != "GET":
            headers["Idempotency-Key"] = self.request.key
        self._token = self._auth.header()
        if self._token:
            headers["Authorization"] = self._token
        return headers

    def read(self, response: httpx2.Response) -> T:
        """Return the typed answer. A problem document is raised as its exception, any other unexpected answer as
        BadAnswer."""
        if response.status_code >= 400:
            raise self.problem(response)
        if response.status_code >= 300:
            raise self._bad(f"a redirect ({response.status_code})")
        if response.status_code == 204 or self.request.answer is NoneType:
            return None  # pyright: ignore[reportReturnType] - such calls say `| None`
        try:
            return msgspec.json.decode(response.content, type=self.request.answer)
        except msgspec.MsgspecError as error:
            raise self._bad(str(error)) from error

    def problem(self, response: httpx2.Response) -> ApiError:
        after = response.headers.get("Retry-After", "")
        seconds = float(after) if after.isdigit() else None
        used = response.headers.get("X-Correlation-Id", self.correlation_id)
        return error_for(
            problem_from(response.status_code, response.content, correlation_id=used, retry_after_s=seconds)
        )

    def _bad(self, why: str) -> BadAnswer:
        sentence = f"{self.request.method} {self.request.path} got an answer this SDK does not understand: {why}."
        return BadAnswer(sentence, correlation_id=self.correlation_id)

    def no_answer(self, error: httpx2.HTTPError) -> ConnectionFailed:
        why = str(error).rstrip(".") or type(error).__name__
        return ConnectionFailed(f"{self._api} does not answer: {why}.", correlation_id=self.correlation_id)

    def stream_refused(self, response: httpx2.Response) -> GpuaasError:
        """Return the error for a rejected stream. A rejected token that can be renewed counts as a lost connection, so
        that the follower reconnects with a new token."""
        error = self.problem(response)
        if isinstance(error, Unauthenticated) and self._auth.forget(self._token):
            return ConnectionFailed(str(error), correlation_id=error.correlation_id)
        return error

    def wait_before_retry(self, error: GpuaasError) -> float:
        """Return the seconds to wait before a retry (0 after a rejected token). Raises the error if a retry cannot
        help."""
        if isinstance(error, Unauthenticated) and not self.request.anonymous and self._renews():
            return 0.0
        if not (self.request.retries and self._backoff.tries < MAX_TRIES - 1 and _may_pass(error)):
            raise error
        wait, asked = self._backoff.next(), getattr(error, "retry_after_s", None) or 0.0
        return max(wait, min(asked, 5.0))

    def _renews(self) -> bool:
        first, self._renewed = not self._renewed, True
        return first and self._auth.forget(self._token)


def _may_pass(error: GpuaasError) -> bool:
    if isinstance(error, ApiError):
        return error.status in TRY_AGAIN or error.code == IN_FLIGHT
    return isinstance(error, ConnectionFailed)


def trusted(api: str) -> bool | ssl.SSLContext:
    """Return the TLS verification for this address. For plain HTTP it has no CA certificates, because loading them is
    slow."""
    return True if api.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Transport:
    """Blocking transport, used by the CLI and by scripts. Safe to share between threads."""

    def __init__(self, api: str, auth: Auth, sleep: Callable[[float], None] = time.sleep) -> None:
        self.api, self.auth, self._sleep = api, auth, sleep
        self.http = httpx2.Client(base_url=api, headers={"User-Agent": USER_AGENT}, verify=trusted(api))
        self._renewing = threading.Lock()

    def send(self, request: Request[T]) -> T:
        exchange = Exchange(request, self.auth, self.api)
        while True:
            try:
                if not request.anonymous:
                    self.sign_in_if_due()
                return self._once(exchange)
            except GpuaasError as error:
                self._sleep(exchange.wait_before_retry(error))

    def _once(self, exchange: Exchange[T]) -> T:
        try:
            return exchange.read(self.http.request(**exchange.arguments()))
        except httpx2.HTTPError as error:
            raise exchange.no_answer(error) from error

    @contextmanager
    def stream(self, request: Request[T], headers: Mapping[str, str]) -> Generator[httpx2.Response]:
        """Open a streaming answer. Used by events.follow, which reconnects by itself."""
        exchange = Exchange(request, self.auth, self.api)
        self.sign_in_if_due()
        try:
            with self.http.stream(**exchange.arguments(headers)) as response:
                if response.status_code != 200:
                    response.read()
                    raise exchange.stream_refused(response)
                yield response
        except httpx2.HTTPError as error:
            raise exchange.no_answer(error) from error

    def sign_in_if_due(self) -> None:
        with self._renewing:
            if self.auth.due() and (renewal := self.auth.renewal()):
                asked_at = now()
                self.auth.accept(self._once(Exchange(renewal, self.auth, self.api)), asked_at)
