"""The context of one request: principal, scope, correlation id, time, and the open transaction.

A context is built only for a verified caller or for the platform itself. Services add events and audit rows to it;
`flush` writes them at the end of the transaction, so a change never exists without its event and its audit row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from ..audit import audit_log
from ..counters import rights
from ..counters import service as counters
from ..events import event_log
from ..kit.clock import DEFAULTS, Durations
from ..kit.correlation import Correlation, Ids
from ..kit.json_types import Json
from ..kit.problems import UNSEEN, NotFound, Problem
from .evaluate import Decision, Deny, Grant, Principal, Scope, evaluate
from .rules import rules_at

NODE_IDS = "node_"  # nodes read no events, and change their keys every day


class Denied(Problem):
    status, code, title = 403, "permission_denied", "Permission denied"
    way_out = "Ask an administrator of the project or tenant for a role with the permission named in `detail`."


class Unauthenticated(Problem):
    status, code, title = 401, "unauthenticated", "Authentication required"
    way_out = "Sign in (`gpuaas login`) or send a valid bearer token."


class TokenExpired(Problem):
    status, code, title = 401, "token_expired", "Access token expired"
    way_out = "Sign in again, or get a new token with your client assertion."


def _exit(key: str, decision: Decision) -> str:
    """Return what a denied caller can do: have a deny rule removed, ask a platform administrator, or ask for a role."""
    if decision.decided_by == "deny":
        return "A deny rule overrides every role. Ask an administrator to remove the rule (`gpuaas deny-rule list`)."
    if key.startswith("platform."):
        return "Only platform administrators have this permission. Ask a platform administrator."
    return f"Ask an administrator of the project or tenant for a role with {key!r} (`gpuaas iam roles`)."


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
    pending: list[event_log.Pending] = field(default_factory=list[event_log.Pending])
    topics: set[str] = field(default_factory=set[str])
    resource_id: str | None = None
    reason: str = ""
    via: Grant | None = None  # the delegation or break-glass that is used
    notes: list[audit_log.Entry] = field(default_factory=list[audit_log.Entry])
    durations: Durations = DEFAULTS
    keeps: str | None = None  # the requested operation or batch; the answer is kept as long as that exists
    rights_end: bool = False  # event streams authorize their callers again before they deliver newer events

    def allow(self, key: str, scope: Scope | None = None, *, denies: Sequence[Deny] | None = None) -> None:
        """Check that the caller has the permission: raise NotFound if the caller cannot see the scope, otherwise Denied
        if the permission is missing. Without `scope` the request's own scope is checked.

        `denies`: the deny rules of the scope, if this transaction has read them already.
        """
        where = scope or self.scope
        rules = rules_at(self.tx, where.chain) if denies is None else denies
        decision = evaluate(self.principal, key, where, rules)
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

    def emit(self, type: str, subject: str, data: Json, *, scope: Scope | None = None) -> None:
        where = scope or self.scope
        tenant_id = where.tenant_id or event_log.PLATFORM
        facts = {"org_id": where.tenant_id, "project_id": where.project_id, **data}
        self.pending.append(event_log.Pending(type, tenant_id, where.project_id, subject, facts))
        self.topics.add(f"events:{tenant_id}")

    def note(self, entry: audit_log.Entry) -> None:
        """Add an audit row, which `flush` writes to the trail of the row's tenant."""
        self.notes.append(entry)

    def note_own(self, scope: Scope, resource_id: str, reason: str) -> None:
        """Add an audit row for an action of the platform itself, which has no request,
        to the trail of the scope's tenant."""
        self.note(
            audit_log.Entry(
                actor_id=self.principal.id,
                actor_kind=self.principal.kind,
                permission=self.permission,
                outcome="allowed",
                reason=reason,
                tenant_id=scope.tenant_id,
                project_id=scope.project_id,
                resource_id=resource_id,
            )
        )

    def notify(self, *topics: str) -> None:
        self.topics.update(topics)

    def rights_changed(self, *ids: str) -> None:
        """Record that the permissions of these principals or in these scopes changed:
        their open requests are authorized again."""
        self.topics.update(rights_topic(id) for id in ids)
        self.rights_end |= any(not id.startswith(NODE_IDS) for id in ids)

    def flush(self, *, audited: bool = True) -> None:
        ids: Ids = {"correlation_id": self.correlation.correlation_id, "trace_id": self.correlation.trace_id}
        own = [self.entry("allowed", self.reason)] if audited or self.via else []
        rows = [*self.notes, *own]
        trails = [row.tenant_id or event_log.PLATFORM for row in rows]
        if self.rights_end:
            rights.count_change(self.tx)
        streams = {event.tenant_id for event in self.pending}
        if len(rows) == 1 and streams == set(trails):  # the usual case: one update of one counter row
            moved = counters.advance(self.tx, trails[0], events=len(self.pending), audits=1)
            audit_log.append(self.tx, rows[0], now=self.now, moved=moved, **ids)
            event_log.append(self.tx, self.pending, now=self.now, moved=moved, **ids)
            return
        counters.hold(self.tx, [*trails, *streams])
        for row in rows:
            audit_log.append(self.tx, row, now=self.now, **ids)
        event_log.append(self.tx, self.pending, now=self.now, **ids)

    def entry(self, outcome: str, reason: str) -> audit_log.Entry:
        return audit_log.Entry(
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
