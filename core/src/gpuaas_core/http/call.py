"""One HTTP request after its caller was verified. Routes receive a `Caller`; nothing else uses HTTP.

Order of checks, by contract: authenticate, authorize, replay, (validate), execute. A write is one transaction that
contains the change, its events, its audit row and the stored answer for repeats.
"""

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response
from fastapi.params import Depends as DependsParam
from pydantic import BaseModel
from sqlalchemy import Connection

from ..audit import audit_log
from ..authz.context import Context, Denied, Unauthenticated, rights_topic
from ..authz.evaluate import Grant, Principal, Scope
from ..idempotency import requests
from ..kit.clock import Clock
from ..kit.correlation import Correlation, current
from ..kit.db import Database
from ..kit.problems import UNSEEN, NotFound
from ..kit.wakeups import Wakeups
from ..kit.wire import read_json
from . import console
from .request_log import seen_in
from .strangers import Strangers

T = TypeVar("T")
ANONYMOUS = Principal("anonymous", "anonymous", "anonymous")
PUBLIC = "public"
READING = ("GET", "HEAD")
RESOURCE = re.compile(r"[A-Za-z0-9._:-]{1,80}")  # the form of a resource id in an audit row
KEYLESS = "x-without-idempotency-key"
SOON_S = 0.05  # margin after an awaited time, so that the clock has passed it
REACHABLE = "reachable"  # a scope: wherever the caller holds the key; the room finds those scopes


@dataclass
class Platform:
    """What the edge needs from the rooms; assembled by `api/`."""

    db: Database
    vault: Any
    wakeups: Wakeups
    clock: Clock
    authenticate: Callable[..., Principal]  # of a transaction, a token and a moment; `lent`: with what is lent to it
    scopes: dict[str, Callable[[Connection, str], Scope]]
    checkpoints: Any = None  # of the audit chains; None when only the routes are inspected
    renewals: console.Renewals | None = None  # of console sessions
    issuers: Any = None  # of OpenID providers
    artifacts: Any = None  # the artifact store, and the reader of artifact sources
    suspicion: Any = None  # called when a former key of a node is presented
    public_url: str = ""  # the platform's address for people and browsers
    owner_of: Callable[[Connection, str], Scope | None] | None = None  # the scope of the resource with this id
    strangers: Strangers = field(default_factory=Strangers)


def needs(key: str, scope: str = "platform", *, keyed: bool = True) -> dict[str, Any]:
    """A route's permission key, and which path parameter is its scope.

    `keyed=False`: an external protocol without Idempotency-Key, whose body the route parses itself.
    """
    return {"openapi_extra": {"x-permission": key, "x-scope": scope} | ({} if keyed else {KEYLESS: True})}


def public() -> dict[str, Any]:
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
        self.body: Any = None
        self.heard = 0
        self._admitted = self._told_owner = False
        self._recheck = False  # the next read also authenticates and authorizes, in its own transaction
        self.seen = seen_in(request.scope)
        if self.seen:
            self.seen.route, self.seen.permission = request.scope["route"].path, self.permission

    @property
    def vault(self) -> Any:
        return self.platform.vault

    @property
    def token(self) -> str:
        header = self.request.headers.get("authorization")
        if header is None and (cookie := console.cookie_token(self.request)):
            return cookie
        scheme, _, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not token or token.startswith(console.PREFIX):
            raise Unauthenticated("This request needs a bearer token.")
        return token

    async def admit(self) -> None:
        """Authenticate and authorize before the body is parsed; a refusal is recorded in a transaction of its own."""
        if self.permission == PUBLIC:
            return
        token = self.token
        await self._recorded(self.platform.db.read(lambda tx: self._admit(tx, token)))

    async def note_visit(self) -> None:
        """Once per request, even if it is a stream that is admitted repeatedly."""
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
        """Where a precondition already guards a request, an Idempotency-Key is optional (a lost answer is repeated)."""
        return "idempotency-key" in self.request.headers

    async def wait(self, topic: str, seconds: float, *, due_at: int | None = None) -> None:
        """Wait until the topic is notified, the caller's rights change, `due_at` is reached or the session expires.

        `due_at`: when the answer may change by itself. The read that follows rejects a caller who has lost the
        permission meanwhile, before it returns anything.
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
        """Topics notified when the caller's rights may have changed: of itself, its delegators and this scope."""
        lenders = [grant.lender.id for grant in self.principal.grants]
        return [rights_topic(id) for id in {self.principal.id, *lenders, *(place[1] for place in self.scope.chain)}]

    async def _record_refusal(self, reason: str) -> None:
        await self.platform.db.write(lambda tx: self._record_denial(tx, reason))

    def _admit_again(self, tx: Connection) -> None:
        self.now = self.platform.clock()
        self._admit(tx, self.token)

    def _admit(self, tx: Connection, token: str) -> None:
        anywhere = self._scope_kind == REACHABLE
        self.principal = self.platform.authenticate(tx, token, self.now, lent=not anywhere)
        if token.startswith(console.PREFIX):
            console.check(self.request, self.vault, self.platform.public_url, token)
        if any("\0" in str(part) for part in self.request.path_params.values()):
            raise NotFound(UNSEEN)  # such a name cannot be stored, and PostgreSQL cannot even query it
        if self.seen:
            self.seen.principal_id = self.principal.id
        if self._scope_kind in self.platform.scopes:
            place = self.request.path_params[f"{self._scope_kind}_id"]
            self.scope = self.platform.scopes[self._scope_kind](tx, place)
        ctx = self.context(tx)
        if anywhere:  # the room asks for the key where it finds something
            self._admitted = True
            return
        try:
            ctx.allow(self.permission)
        finally:
            self.via, self.reason = ctx.via, ctx.reason
        self._admitted = True
        self._show_scope()

    def _show_scope(self) -> None:
        """Only once the scope is known to be visible: a log line must not tell its owner of a stranger's guess."""
        if self.seen:
            self.seen.tenant_id, self.seen.project_id = self.scope.tenant_id, self.scope.project_id

    def _record_denial(self, tx: Connection, reason: str) -> None:
        self._show_scope()
        entry = self.context(tx).entry("denied", reason)
        ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
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
        )

    async def read(self, fn: Callable[[Context], T], *, deliver: bool = False) -> T:
        """`deliver`: long after the request was admitted. A result is returned only to a caller who may see it now."""
        self.heard = self.platform.wakeups.sequence  # notifications during this read must not be missed

        def transaction(tx: Connection) -> T:
            if self._recheck:
                self._admit_again(tx)
            result = fn(self.context(tx))
            if deliver and result and not self._recheck:
                self._admit_again(tx)
            return result

        result = await self._recorded(self.platform.db.read(transaction))
        self._recheck = False
        return result

    async def write(
        self,
        fn: Callable[[Context], BaseModel | None],
        *,
        status: int = 200,
        location: Callable[[Any], str] | None = None,
        finish: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        repeats: bool = True,
        audited: bool = True,
    ) -> Response:
        """`repeats=False`: idempotent, so no answer is stored. `finish` adds what must not be stored.

        An answer without content ("no work") is not stored either: a repeated request may get another.
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
        """A refusal rolls back its transaction, so its audit row gets one of its own."""
        try:
            return await work
        except Denied as refusal:
            await self._record_refusal(refusal.detail)
            raise
        except NotFound:
            self._tell_owner_later()
            raise

    def _tell_owner_later(self) -> None:
        """A change of a resource the caller may not see: if it exists, its owner's trail records the attempt."""
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
        who = {"actor_id": self.principal.id, "actor_kind": self.principal.kind, "permission": self.permission}
        place = {"tenant_id": where.tenant_id, "project_id": where.project_id, "resource_id": aimed_at}
        entry = audit_log.Entry(**who, **place, outcome="denied", reason=reason)
        ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
        await self.platform.db.write(lambda tx: audit_log.append(tx, entry, now=self.now, **ids))

    def _aimed_at(self, tx: Connection) -> Scope | None:
        """The scope in the path; or, if the caller sees that, the first resource of the path in another scope."""
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
        """Required wherever the contract says so, also where a repeat is harmless: one rule for all."""
        key = self.request.headers.get("idempotency-key", "")
        if not re.fullmatch(requests.KEY_PATTERN, key):
            raise requests.KeyMissing("This request needs an Idempotency-Key header.")
        return key

    def _request_key(self) -> requests.RequestKey:
        key = self.check_key()
        url = self.request.url
        content = requests.fingerprint(url.path, url.query, self.body)
        template = self.request.scope["route"].path
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

    def response(self, finish: Callable[[dict[str, Any]], dict[str, Any]] | None) -> Response:
        headers = {"Location": self.location} if self.location else {}
        if self.replayed:
            headers["Idempotency-Replayed"] = "true"
        if self.status == 202:
            headers["Retry-After"] = "1"
        body = json.dumps(finish(json.loads(self.body))) if finish else self.body
        media = "application/json" if body else None
        return Response(body or None, self.status, headers, media)


def _answer(result: BaseModel | None, status: int, location: Callable[[Any], str] | None) -> _Answer:
    if result is None:
        return _Answer(204, "")
    return _Answer(status, result.model_dump_json(), location(result) if location else None)


async def _call(request: Request) -> Call:
    call = Call(request)
    await call.admit()
    await call.note_visit()
    await call.read_body()
    return call


Verified: DependsParam = Depends(_call)
Caller = Annotated[Call, Verified]
