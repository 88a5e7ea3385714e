"""The `Call`: one HTTP request with its verified caller and its transactions. Route handlers receive it as `Caller`;
services and other layers never see HTTP.

Order of checks, by contract: authenticate, authorize, replay, (validate), execute. A write is one transaction that
contains the change, its events, its audit row and the stored answer for repeats.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Annotated, TypedDict, TypeVar

from fastapi import Depends, Request, Response
from fastapi.params import Depends as DependsParam
from pydantic import BaseModel
from sqlalchemy import Connection

from ..audit import audit_log
from ..audit.checkpoints import Checkpoints
from ..authz.context import Context, Denied, Unauthenticated, rights_topic
from ..authz.evaluate import Deny, Grant, Principal, Scope
from ..authz.ids import PrincipalId
from ..authz.rules import ScopeAndRules
from ..events.feed import Feeds
from ..idempotency import requests
from ..kit.clock import DEFAULTS, Clock, Durations
from ..kit.correlation import Correlation, Ids, current
from ..kit.db import Database
from ..kit.json_types import Json, JsonValue
from ..kit.latest import Latest
from ..kit.problems import UNSEEN, NotFound, Problem
from ..kit.vault import Vault
from ..kit.wakeups import Wakeups
from ..kit.wire import read_json
from ..read_ahead.reads import ReadAhead
from . import console
from .request_log import header_of, seen_in
from .services import Services
from .strangers import Strangers

T = TypeVar("T")
ANONYMOUS = Principal(PrincipalId("anonymous"), "anonymous", "anonymous")
V = TypeVar("V", bound=BaseModel)
Answer = dict[str, JsonValue]
Finish = Callable[[Answer], Json]
PUBLIC = "public"
READING = ("GET", "HEAD")
RESOURCE = re.compile(r"[A-Za-z0-9._:-]{1,80}")  # the form of a resource id in an audit row
KEYLESS = "x-without-idempotency-key"
VERIFIED = "gpuaas.verified"  # in the scope of a request: its caller was authenticated and authorized
SOON_S = 0.05  # margin after an awaited time, so that the clock has passed it
REACHABLE = "reachable"  # a scope: wherever the caller holds the key; the room finds those scopes


class Marks(TypedDict):
    """OpenAPI extensions of a route: the required permission (`x-permission`) and its scope (`x-scope`)."""

    openapi_extra: dict[str, JsonValue]


class Returns(TypedDict):
    """A keyword argument for route decorators: the response model of a handler that returns a plain `Response`."""

    response_model: type[BaseModel] | UnionType


@dataclass
class Platform:
    """The database, clock, authenticator and scope readers that every request uses; assembled by `api/`."""

    db: Database
    vault: Vault
    wakeups: Wakeups
    clock: Clock
    authenticate: Callable[[Connection, str, int], Principal]  # by token and moment, without what is lent to it
    lend: Callable[[Connection, Principal, int, Scope], Principal]  # the same principal with what is lent to it there
    scopes: dict[str, Callable[[Connection, str], ScopeAndRules]]  # with the deny rules that apply there
    checkpoints: Checkpoints | None = None  # of the audit chains; None when only the routes are inspected
    renewals: console.Renewals | None = None  # of console sessions
    services: Services = field(default_factory=Services)
    suspicion: Callable[[Context, Problem, str], None] | None = None  # called when a former key of a node is presented
    public_url: str = ""  # the platform's address for people and browsers
    owner_of: Callable[[Connection, str], Scope | None] | None = None  # the scope of the resource with this id
    strangers: Strangers = field(default_factory=Strangers)
    feeds: Feeds = field(default_factory=Feeds)  # of open event streams
    contacts: Latest[tuple[int, int]] = field(default_factory=Latest[tuple[int, int]])  # by node: last seen, next due
    durations: Durations = DEFAULTS
    tenants: dict[str, str] = field(default_factory=dict[str, str])  # by project: only a guess of what a read asks for

    @cached_property
    def read_ahead(self) -> ReadAhead:
        return ReadAhead(self.db)


def needs(key: str, scope: str = "platform", *, keyed: bool = True) -> Marks:
    """Declare the permission that a route needs, and the path parameter that names the scope in which it is checked.

    `keyed=False`: for a route of an external protocol. It takes no Idempotency-Key and parses its body itself.
    """
    marks: dict[str, JsonValue] = {"x-permission": key, "x-scope": scope}
    return {"openapi_extra": marks if keyed else {**marks, KEYLESS: True}}


def public() -> Marks:
    return needs(PUBLIC, "none")


class Call:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.platform: Platform = request.app.state.platform
        marks = request.scope["route"].openapi_extra
        self.permission: str = marks["x-permission"]
        self._scope_kind: str = marks["x-scope"]
        self._keyed = KEYLESS not in marks
        self.correlation: Correlation = current.get() or Correlation("cor-none", "0" * 32)
        self.principal, self.scope = ANONYMOUS, Scope()
        self.via: Grant | None = None  # the delegation or break-glass that grants the permission
        self.reason = ""
        self.now = self.platform.clock()
        self.body: JsonValue = None
        self.heard = 0
        self._token: str | None = None
        self._admitted = self._told_owner = False
        self._recheck = False  # the next read also authenticates and authorizes, in its own transaction
        self.seen = seen_in(request.scope)
        if self.seen:
            self.seen.route, self.seen.permission = request.scope["route"].path, self.permission

    @property
    def vault(self) -> Vault:
        return self.platform.vault

    @property
    def token(self) -> str:
        if self._token is None:
            self._token = self._sent_token()
        return self._token

    def _sent_token(self) -> str:
        header = header_of(self.request.scope, b"authorization")
        if header is None and (cookie := console.cookie_token(self.request)):
            return cookie
        scheme, _, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not token or token.startswith(console.PREFIX):
            raise Unauthenticated("This request needs a bearer token.")
        return token

    async def admit(self) -> None:
        """Authenticate and authorize the caller before the body is parsed, or raise an error. A public route needs
        neither. A refusal is audited in a separate transaction."""
        if self.permission == PUBLIC:
            return
        token = self.token
        await self._recorded(self.platform.db.read(lambda tx: self._admit(tx, token)))

    async def verified_by_reading(self, work: Awaitable[Response]) -> Response:
        """Await the handler `work`, whose first `read` also verifies the caller, in the same transaction. Raise
        RuntimeError if the handler read nothing."""
        self._recheck = self.permission != PUBLIC
        try:
            response = await work
        finally:
            if self._admitted:
                await self.note_visit()
        if self._recheck:
            raise RuntimeError(f"{self.request.url.path} was answered without a read that verifies its caller.")
        return response

    async def note_visit(self) -> None:
        """Audit the request if it is a read under break-glass or a delegation, and renew its console session if that is
        due. Called once per request, also for streams."""
        if self.via and self.request.method == "GET":
            await self.platform.db.write(lambda tx: self.context(tx).flush())
        renewals = self.platform.renewals
        if self.by_cookie and renewals and renewals.due(self.token, self.now):
            await self.platform.db.write(lambda tx: renewals.renew(tx, self.token, self.now))

    @property
    def by_cookie(self) -> bool:
        return self.principal is not ANONYMOUS and self.token.startswith(console.PREFIX)

    async def read_body(self) -> None:
        if self.permission == PUBLIC or self.request.method not in ("POST", "PUT") or not self._keyed:
            return
        if self.request.method == "POST":
            self.check_key()
        self.body = read_json(await self.request.body())

    @property
    def keyed(self) -> bool:
        """Whether the request has an Idempotency-Key. The key is optional where a precondition (If-Match) already
        guards the request."""
        return "idempotency-key" in self.request.headers

    async def wait(self, topic: str, seconds: float, *, due_at: int | None = None) -> None:
        """Wait at most `seconds` until the topic is notified, the caller's rights change, `due_at` is reached or the
        session expires.

        `due_at`: the time at which the answer may change without a notification. The next read rejects a caller who has
        lost the permission meanwhile, before it returns anything.
        """
        moments = [moment for moment in (due_at, self.principal.session_ends_at) if moment is not None]
        for moment in moments:
            seconds = min(seconds, max(moment - self.platform.clock(), 0) / 1000 + SOON_S)
        await self.platform.wakeups.wait(topic, *self.rights_topics, timeout_s=seconds, since=self.heard)
        self.check_again()

    def check_again(self) -> None:
        self._recheck = True

    @property
    def rights_topics(self) -> list[str]:
        """The wake-up topics for changes of the rights of the caller, of the caller's delegators and in this scope."""
        lenders = [grant.lender.id for grant in self.principal.grants]
        return [rights_topic(id) for id in {self.principal.id, *lenders, *(place[1] for place in self.scope.chain)}]

    async def _record_refusal(self, reason: str) -> None:
        await self.platform.db.write(lambda tx: self._record_denial(tx, reason))

    def _admit_again(self, tx: Connection) -> None:
        self.now = self.platform.clock()
        self._admit(tx, self.token)

    def _admit(self, tx: Connection, token: str) -> None:
        anywhere = self._scope_kind == REACHABLE
        self.principal = self.platform.authenticate(tx, token, self.now)
        if token.startswith(console.PREFIX):
            console.check(self.request, self.vault, self.platform.public_url, token)
        if "\0" in self.request.scope["path"]:
            raise NotFound(UNSEEN)  # such a name cannot be stored, and PostgreSQL cannot even query it
        if self.seen:
            self.seen.principal_id = self.principal.id
        denies: list[Deny] | None = None
        if self._scope_kind in self.platform.scopes:
            place = self.request.path_params[f"{self._scope_kind}_id"]
            self.scope, denies = self.platform.scopes[self._scope_kind](tx, place)
        if anywhere:  # the room asks for the key where it finds something
            self._admitted = self.request.scope[VERIFIED] = True
            return
        self.principal = self.platform.lend(tx, self.principal, self.now, self.scope)
        ctx = self.context(tx)
        try:
            ctx.allow(self.permission, denies=denies)
        finally:
            self.via, self.reason = ctx.via, ctx.reason
        self._admitted = self.request.scope[VERIFIED] = True
        self._show_scope()

    def _show_scope(self) -> None:
        """Add the tenant and project of the request to the request log. Called only if the caller may see the scope: a
        tenant must not see requests of strangers who guess ids."""
        if self.seen:
            self.seen.tenant_id, self.seen.project_id = self.scope.tenant_id, self.scope.project_id

    def _record_denial(self, tx: Connection, reason: str) -> None:
        self._show_scope()
        entry = self.context(tx).entry("denied", reason)
        ids: Ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
        audit_log.append(tx, entry, now=self.now, **ids)

    def context(self, tx: Connection) -> Context:
        return Context(
            tx,
            self.principal,
            self.scope,
            self.permission,
            self.correlation,
            self.now,
            reason=self.reason,
            via=self.via,
            durations=self.platform.durations,
        )

    async def read(self, fn: Callable[[Context], T], *, deliver: bool = False) -> T:
        """Run `fn` in a read transaction and return its result.

        `deliver`: authorize the caller again before a non-empty result is returned, for requests that have waited a
        long time.
        """
        self.heard = self.platform.wakeups.sequence  # notifications during this read must not be missed

        def transaction(tx: Connection) -> T:
            if self._recheck:
                self._admit_again(tx)
            result = fn(self.context(tx))
            if deliver and result and not self._recheck:
                self._admit_again(tx)
            return result

        result = await self._recorded(self._read(transaction))
        self._recheck = False
        if self.scope.project_id and self.scope.tenant_id:
            self.platform.tenants[self.scope.project_id] = self.scope.tenant_id
        return result

    def _read(self, transaction: Callable[[Connection], T]) -> Awaitable[T]:
        """Run a read transaction. If it also verifies the caller and the URL has no query, its statements depend only
        on the path and the token, and are sent ahead (`ReadAhead`)."""
        if self.platform.db.is_sqlite or not self._recheck or self.request.scope["query_string"]:
            return self.platform.db.read(transaction)
        inputs = {**self.request.path_params, "token": hashlib.sha256(self.token.encode()).hexdigest()}
        if tenant_id := self.platform.tenants.get(inputs.get("project_id", "")):
            inputs["tenant_id"] = tenant_id
        return self.platform.read_ahead.read(self.request.scope["route"].path, inputs, transaction)

    async def write(
        self,
        fn: Callable[[Context], V | None],
        *,
        status: int = 200,
        location: Callable[[V], str] | None = None,
        finish: Finish | None = None,
        repeats: bool = True,
        audited: bool = True,
    ) -> Response:
        """Run `fn` in one write transaction that also stores its events, its audit row and its answer, and return the
        response. A repeated request gets the stored answer.

        `repeats=False`: the request is idempotent, so no answer is stored. `finish` adds secrets to the response;
        secrets are not stored. An answer without content ("no work") is never stored, because a repeated request may
        find work.
        """
        key = self._request_key() if repeats else None
        topics: set[str] = set()

        def transaction(tx: Connection) -> _Answer:
            ctx = self.context(tx)
            if self.permission != PUBLIC and self._scope_kind != REACHABLE:
                ctx.allow(self.permission)
            if key and (known := requests.take(tx, key)):
                return _Answer(known.status, known.body, known.location, replayed=True)
            result = fn(ctx)
            answer = _answer(result, status, location)
            if result is None and not ctx.pending:
                return answer
            ctx.flush(audited=audited)
            if key and result is not None:
                requests.remember(
                    tx,
                    key,
                    status=answer.status,
                    body=answer.body,
                    location=answer.location,
                    now=ctx.now,
                    kept_for=ctx.keeps,
                )
            topics.update(ctx.topics)
            return answer

        answer = await self._recorded(self.platform.db.write(transaction))
        self.platform.wakeups.notify(topics)
        return answer.response(finish)

    async def _recorded(self, work: Awaitable[T]) -> T:
        """Await the transaction. On `Denied`, audit the refusal in a separate transaction, because the first was rolled
        back; on `NotFound`, schedule an audit row for the owner of the resource. Both errors are raised again."""
        try:
            return await work
        except Denied as refusal:
            await self._record_refusal(refusal.detail)
            raise
        except NotFound:
            self._tell_owner_later()
            raise

    def _tell_owner_later(self) -> None:
        """Schedule an audit row for the owner of a resource that the caller tried to change but may not see."""
        changes = self.principal is not ANONYMOUS and self.request.method not in READING
        if changes and self.seen and not self._told_owner:
            self._told_owner = True
            self.seen.afterwards.append(self._tell_owner)

    async def _tell_owner(self) -> None:
        where = await self.platform.db.read(self._aimed_at)
        if where is None or where.tenant_id is None:
            return
        reason = self.platform.strangers.reason(self.principal, self.permission, where, self.now)
        if reason is None:
            return
        named = [str(part) for part in self.request.path_params.values()]
        aimed_at = named[-1] if named and RESOURCE.fullmatch(named[-1]) else None
        entry = audit_log.Entry(
            actor_id=self.principal.id,
            actor_kind=self.principal.kind,
            permission=self.permission,
            outcome="denied",
            reason=reason,
            tenant_id=where.tenant_id,
            project_id=where.project_id,
            resource_id=aimed_at,
        )
        ids: Ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
        await self.platform.db.write(lambda tx: audit_log.append(tx, entry, now=self.now, **ids))

    def _aimed_at(self, tx: Connection) -> Scope | None:
        """Return the scope that the request tried to change: the scope in the path if the caller was refused there,
        otherwise that of the first resource in the path that belongs to another scope, or None."""
        if not self._admitted:
            return self.scope
        find = self.platform.owner_of
        inner = [str(part) for name, part in self.request.path_params.items() if name != f"{self._scope_kind}_id"]
        scopes = [find(tx, part) for part in inner if RESOURCE.fullmatch(part)] if find else []
        return next((scope for scope in scopes if scope and not self._is_here(scope)), None)

    def _is_here(self, other: Scope) -> bool:
        project_id = self.scope.project_id
        return other.tenant_id == self.scope.tenant_id and (
            project_id is None or other.project_id in (None, project_id)
        )

    def check_key(self) -> str:
        """Return the Idempotency-Key of the request; raise KeyMissing if it is missing or malformed. Every POST needs a
        key, even if repeating the request would be harmless."""
        key = self.request.headers.get("idempotency-key", "")
        if not re.fullmatch(requests.KEY_PATTERN, key):
            raise requests.KeyMissing("This request needs an Idempotency-Key header.")
        return key

    def _request_key(self) -> requests.RequestKey:
        key = self.check_key()
        scope = self.request.scope
        content = requests.fingerprint(scope["path"], scope["query_string"].decode("latin-1"), self.body)
        template = scope["route"].path
        return requests.RequestKey(
            principal_id=self.principal.id,
            route=f"{self.request.method} {template}",
            scope_id=self.scope.id,
            key=key,
            fingerprint=self.vault.mac(content),  # keyed: a body may contain a password
        )


@dataclass
class _Answer:
    status: int
    body: str
    location: str | None = None
    replayed: bool = False

    def response(self, finish: Finish | None) -> Response:
        headers = {"Location": self.location} if self.location else {}
        if self.replayed:
            headers["Idempotency-Replayed"] = "true"
        if self.status == 202:
            headers["Retry-After"] = "1"
        body = json.dumps(finish(json.loads(self.body))) if finish else self.body
        media = "application/json" if body else None
        return Response(body or None, self.status, headers, media)


def _answer(result: V | None, status: int, location: Callable[[V], str] | None) -> _Answer:
    if result is None:
        return _Answer(204, "")
    return _Answer(status, result.model_dump_json(), location(result) if location else None)


async def _call(request: Request) -> Call:
    call = Call(request)
    await call.admit()
    await call.note_visit()
    await call.read_body()
    return call


async def _polling(request: Request) -> Call:
    call = Call(request)
    call.check_again()
    try:
        await call.read_body()
    except Problem:
        await call.admit()
        raise
    return call


async def verify(request: Request) -> None:
    """Authenticate and authorize the caller unless that was done before, for a request that was rejected before its
    handler ran. Raise an error if the caller is refused."""
    if VERIFIED not in request.scope:
        await Call(request).admit()


Verified: DependsParam = Depends(_call)
Caller = Annotated[Call, Verified]
# A machine that polls. The first `call.read` of the handler verifies it, in the same transaction, so an idle poll needs
# one. Nothing may be done or noted before that read.
Poller = Annotated[Call, Depends(_polling)]
