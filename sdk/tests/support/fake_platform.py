"""A small real HTTP server for the tests: it speaks the part of the wire contract a test needs, over a real socket.

Tests script it: `platform.on("POST", r"/v1/tenants", handler)` takes precedence over the claims it knows by itself.
A handler gets a Call and returns (status, body) or (status, body, headers), or raises Cut to break the connection.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import threading
import time
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from gpuaas_sdk.client.models import ClaimView, InstanceView, LeaseView, MemberView, OperationView

Answer = tuple[Any, ...]
Handler = Callable[["Call"], Answer]
LEASE_S = 2


class Cut(Exception):
    """Break the connection without an answer."""


@dataclass
class Stream:
    """An event stream that ends after these bytes: `clean` as an end, else in the middle of a chunk."""

    data: bytes
    clean: bool = True


@dataclass
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)

    @property
    def key(self) -> str:
        return self.headers.get("idempotency-key", "")


def wire(model: type[msgspec.Struct], **given: Any) -> dict[str, Any]:
    """An answer as the contract demands it: the given fields, and something plain for every other required one."""
    missing = [f for f in msgspec.structs.fields(model) if f.required and f.name not in given]
    return {**{f.name: _plain(f.type) for f in missing}, **given}


def _plain(annotation: Any) -> Any:
    options = typing.get_args(annotation)
    if type(None) in options:
        return None
    kind = typing.get_origin(annotation) or annotation
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return wire(kind)
    return kind()


def problem(status: int, code: str, **more: Any) -> Answer:
    body = {
        "type": f"urn:gpuaas:error:{code}",
        "title": code,
        "status": status,
        "detail": f"It is {code}.",
        "code": code,
    }
    return status, {**body, "way_out": "Do otherwise.", "correlation_id": "cor-server", "errors": [], **more}


class Platform:
    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.handlers: list[tuple[str, re.Pattern[str], Handler]] = []
        self.lease_s = LEASE_S
        self.changed = threading.Condition()
        self.waiting: list[dict[str, Any]] = []  # operations to hand out
        self.epochs: dict[str, int] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.cancel: set[str] = set()
        self._ids = itertools.count(1)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler_class())
        self._server.daemon_threads = True
        self._closed = False
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._closed = True
        with self.changed:
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    # --- scripting

    def on(self, method: str, path: str, handler: Handler) -> None:
        self.handlers.insert(0, (method, re.compile(path + "$"), handler))

    def seen(self, method: str, path: str) -> list[Call]:
        return [c for c in self.calls if c.method == method and re.fullmatch(path, c.path)]

    def reports(self, verb: str) -> list[Call]:
        return self.seen("POST", rf"/v1/projects/\w+/operations/\w+/{verb}")

    def queue(self, kind: str = "deploy", **more: Any) -> str:
        """Make an operation that can be claimed."""
        operation_id = f"op_{next(self._ids)}"
        output = {"id": operation_id, "kind": kind, "instance_id": "inst_1", "status": "queued"}
        operation = wire(OperationView, **(output | more), correlation_id=f"cor-of-{operation_id}")
        with self.changed:
            self.operations[operation_id] = operation
            self.waiting.append(operation)
            self.changed.notify_all()
        return operation_id

    def take_over(self, operation_id: str) -> None:
        """Another holder has it now."""
        self.epochs[operation_id] += 1

    # --- the claims it knows

    def _claim(self, call: Call) -> Answer:
        until = time.monotonic() + call.body["wait_s"]
        with self.changed:
            while not self.waiting and not self._closed and time.monotonic() < until:
                self.changed.wait(min(0.05, until - time.monotonic()))
            if not self.waiting:
                return 204, None
            operation = self.waiting.pop(0)
        epoch = self.epochs[operation["id"]] = self.epochs.get(operation["id"], 0) + 1
        operation.update(status="running", claim_epoch=epoch, claimed_by=call.body["holder"])
        output = {"operation": operation, "instance": self.instance(), "claim_epoch": epoch}
        return 200, wire(ClaimView, **output, lease_expires_in_s=self.lease_s)

    def _report(self, call: Call) -> Answer:
        operation_id, verb = call.path.split("/")[-2:]
        operation = self.operations[operation_id]
        if call.body["claim_epoch"] != self.epochs[operation_id] or operation["status"] not in ("running",):
            return problem(409, "stale_claim")
        if verb in ("heartbeat", "progress"):
            lease = {"lease_expires_in_s": self.lease_s, "cancel_requested": operation_id in self.cancel}
            return 200, wire(LeaseView, **lease)
        if verb == "access-grants":
            return problem(422, "no_hosts_here")
        ends = {"complete": "succeeded", "fail": "failed", "return-claim": "queued"}
        operation["status"] = ends.get(verb, "running")
        return 200, operation

    def instance(self) -> dict[str, Any]:
        output = {"id": "inst_1", "name": "train", "project_id": "prj_1", "app_slug": "slurm", "state": "provisioning"}
        members = [_member("mem_1", "controller"), _member("mem_2", "worker")]
        return wire(InstanceView, **output, members=members, a_field_of_the_future={"x": 1})

    def answer(self, call: Call) -> Answer:
        for method, pattern, handler in self.handlers:
            if method == call.method and pattern.match(call.path):
                return handler(call)
        if call.path.endswith("/operations/claim"):
            return self._claim(call)
        if call.method == "POST" and "/operations/" in call.path:
            return self._report(call)
        if "/instances/" in call.path:
            return 200, self.instance()
        if "/operations/" in call.path:
            return 200, self.operations[call.path.rsplit("/", 1)[1]]
        return problem(404, "not_found")

    def _handler_class(self) -> type[BaseHTTPRequestHandler]:
        platform = self

        class HttpHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.answer("GET")

            def do_PUT(self) -> None:
                self.answer("PUT")

            def do_DELETE(self) -> None:
                self.answer("DELETE")

            def do_POST(self) -> None:
                self.answer("POST")

            def answer(self, method: str) -> None:
                call = self.read_call(method)
                platform.calls.append(call)
                try:
                    status, body, *more = platform.answer(call)
                    if isinstance(body, Stream):
                        self.stream(body)
                    self.write(status, body, more[0] if more else {})
                except (Cut, ConnectionError):
                    with contextlib.suppress(OSError):  # the client may have hung up first
                        self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True

            def read_call(self, method: str) -> Call:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                url = urlsplit(self.path)
                is_json = raw and "json" in self.headers.get("Content-Type", "")
                query = {k: v[0] for k, v in parse_qs(url.query).items()}
                headers = {k.lower(): v for k, v in self.headers.items()}
                return Call(method, url.path, query, headers, json.loads(raw) if is_json else raw.decode())

            def write(self, status: int, body: Any, headers: dict[str, str]) -> None:
                data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
                kind = "application/problem+json" if status >= 400 else "application/json"
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def stream(self, body: Stream) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header(
                    "Connection" if body.clean else "Transfer-Encoding", "close" if body.clean else "chunked"
                )
                self.end_headers()
                head = b"" if body.clean else f"{len(body.data) + 9:x}\r\n".encode()
                self.wfile.write(head + body.data)
                raise Cut

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return HttpHandler


def _member(member_id: str, component: str) -> dict[str, Any]:
    return wire(MemberView, id=member_id, component_key=component, state="pending", allocation_id="alloc_1")
