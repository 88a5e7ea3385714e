"""The context of one request: who, where, under which correlation id, when, and the open transaction.

Built only for a verified caller. What a service emits and records is written by `flush`, as the last act of the
transaction, so a change never exists without its event and its audit row.
"""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from ..kit.problems import UNSEEN, NotFound, Problem
from ..ledger import audit, events, heads
from ..ledger.correlation import Correlation
from .evaluate import Decision, Grant, Principal, Scope
from .rules import decide


class Denied(Problem):
    status, code, title = 403, "permission_denied", "You may not do this"
    way_out = "Ask an administrator of the project or tenant for a role that holds the permission named in `detail`."


class Unauthenticated(Problem):
    status, code, title = 401, "unauthenticated", "Nobody is signed in"
    way_out = "Sign in (`gpuaas login`) or send a valid bearer token."


class TokenExpired(Problem):
    status, code, title = 401, "token_expired", "The access token is no longer valid"
    way_out = "Sign in again, or get a new token with your client assertion."


def _exit(key: str, decision: Decision) -> str:
    """No role helps against a deny rule, and no tenant gives what belongs to the platform."""
    if decision.decided_by == "deny":
        return "Deny rules go before every role: ask whoever set this one to lift it (`gpuaas deny-rule list`)."
    if key.startswith("platform."):
        return "This belongs to those who run the platform: ask one of them."
    return f"Ask an administrator of the project or tenant for a role that holds {key!r} (`gpuaas iam roles`)."


def rights_topic(principal_or_place_id: str) -> str:
    return f"rights:{principal_or_place_id}"


@dataclass
class Context:
    tx: Connection
    principal: Principal
    scope: Scope
    permission: str
    correlation: Correlation
    now: int
    pending: list[events.Pending] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    resource_id: str | None = None
    reason: str = ""
    via: Grant | None = None  # the delegation or break-glass this is done through
    notes: list[audit.Entry] = field(default_factory=list)
    keeps: str | None = None  # the operation or batch that was asked for; the answer is remembered as long as that

    def allow(self, key: str, scope: Scope | None = None) -> None:
        """Invisible is 404; visible but not permitted is 403 (the edge records it)."""
        decision = decide(self.tx, self.principal, key, scope or self.scope)
        self.via = decision.via or self.via
        if decision.allowed:
            self.reason = decision.reason
            return
        if not decision.visible:
            raise NotFound(UNSEEN)
        extra = {"permission": key, "decided_by": decision.decided_by}
        raise Denied(self._refusal(key, decision), way_out=_exit(key, decision), extra=extra)

    def _refusal(self, key: str, decision: Decision) -> str:
        if decision.decided_by == "deny":
            return f"The permission {key!r} is {decision.reason}."
        return f"{self.principal.name} lacks the permission {key!r} here."

    def emit(self, type: str, subject: str, data: dict[str, Any], *, scope: Scope | None = None) -> None:
        where = scope or self.scope
        tenant_id = where.tenant_id or events.PLATFORM
        facts = {"org_id": where.tenant_id, "project_id": where.project_id} | data
        self.pending.append(events.Pending(type, tenant_id, where.project_id, subject, facts))
        self.topics.add(f"events:{tenant_id}")

    def note(self, entry: audit.Entry) -> None:
        """One more audit row, in the trail of whoever it concerns."""
        self.notes.append(entry)

    def note_own(self, scope: Scope, resource_id: str, reason: str) -> None:
        """For what nobody asked for at this moment: the trail of whom it concerns says who did it and why."""
        where = {"tenant_id": scope.tenant_id, "project_id": scope.project_id, "resource_id": resource_id}
        who = {"actor_id": self.principal.id, "actor_kind": self.principal.kind, "permission": self.permission}
        self.note(audit.Entry(**who, **where, outcome="allowed", reason=reason))

    def notify(self, *topics: str) -> None:
        self.topics.update(topics)

    def rights_changed(self, *ids: str) -> None:
        """Of a principal, or of all who act at a place: what they wait for is checked again at once, not delivered."""
        self.topics.update(rights_topic(one) for one in ids)

    def flush(self, *, audited: bool = True) -> None:
        ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
        own = [self.entry("allowed", self.reason)] if audited or self.via else []
        rows = [*self.notes, *own]
        trails = [row.tenant_id or events.PLATFORM for row in rows]
        heads.hold(self.tx, [*trails, *(one.tenant_id for one in self.pending)])
        for row in rows:
            audit.append(self.tx, row, now=self.now, **ids)
        events.append(self.tx, self.pending, now=self.now, **ids)

    def entry(self, outcome: str, reason: str) -> audit.Entry:
        return audit.Entry(
            actor_id=self.principal.id,
            actor_kind=self.principal.kind,
            permission=self.permission,
            outcome=outcome,
            reason=reason,
            tenant_id=self.scope.tenant_id,
            project_id=self.scope.project_id,
            resource_id=self.resource_id,
            via=self.via.id if self.via else None,
            on_behalf_of=self.via.on_behalf_of if self.via else None,
        )
