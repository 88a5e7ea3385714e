"""The evaluator: a pure function that decides, with a reason, whether a principal has a permission key in a scope.

Order of checks: containment (a service account leaves its project only by a delegation), deny rules (platform, tenant,
project), bindings, delegations and break-glass, permissions that every caller has, default deny. A deny rule that
cannot be parsed denies everything. A delegation ends when its grantor loses the permission.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..kit.json_types import JsonValue
from .ids import PrincipalId, ProjectId, TenantId
from .permissions import APPOINT_OPERATOR, BREAK_THE_GLASS, EVERYBODY, OPERATOR_KEYS, ROLES, UNDENIABLE

Place = tuple[str, str]  # ("project", "prj_…")
PLATFORM: Place = ("platform", "*")
PATTERN = re.compile(r"[a-z_]+(\.[a-z_]+){2}|[a-z_]+(\.[a-z_]+)?\.\*")  # one key, or a family: "apps.*"
DELEGATION, BREAK_GLASS = "delegation", "break_glass"
READING = {"project": "tenancy.project.read", "tenant": "tenancy.tenant.read", "node": "capacity.node.read"}


@dataclass(frozen=True)
class Binding:
    role: str
    place: Place
    id: str = ""
    custom: frozenset[str] | None = None  # the keys of a tenant's own role; None: a system role

    @property
    def keys(self) -> frozenset[str]:
        return ROLES.get(self.role, frozenset()) if self.custom is None else self.custom


@dataclass(frozen=True)
class Deny:
    id: str
    place: Place
    keys: JsonValue  # as stored: permission keys and patterns; an invalid pattern denies
    reason: str = ""


@dataclass(frozen=True)
class Grant:
    """Permission keys that a delegation or a break-glass gives a principal in one scope for a limited time."""

    id: str
    kind: str  # delegation (of keys that the grantor holds) or break_glass (of a platform administrator)
    place: Place
    keys: frozenset[str]
    lender: "Principal"

    @property
    def on_behalf_of(self) -> PrincipalId | None:
        return self.lender.id if self.kind == DELEGATION else None


@dataclass(frozen=True)
class Principal:
    id: PrincipalId
    kind: str  # user, service_account, node
    name: str
    tenant_id: TenantId | None = None
    project_id: ProjectId | None = None  # service accounts: their project
    email: str | None = None
    bindings: tuple[Binding, ...] = field(default=())
    grants: tuple[Grant, ...] = field(default=())
    borrows: bool = False  # delegations or a break-glass may exist that `grants` does not contain yet
    key_id: str | None = None  # the key it signed in with, if it uses keys
    session_ends_at: int | None = None  # when its session expires


@dataclass(frozen=True)
class Scope:
    """Where a resource belongs: the chain from the resource itself (project, tenant or node) up to the platform."""

    chain: tuple[Place, ...] = (PLATFORM,)
    tenant_id: TenantId | None = None
    project_id: ProjectId | None = None

    @property
    def id(self) -> str:
        return self.chain[0][1]


@dataclass(frozen=True)
class Decision:
    allowed: bool
    visible: bool
    reason: str
    decided_by: str = "default"  # containment, deny, binding, delegation, break_glass, everybody, default
    matched: tuple[str, ...] = ()  # ids of the bindings, grants or deny rules that decided
    via: Grant | None = None  # the grant that allows it, or makes it visible


def evaluate(principal: Principal, key: str, scope: Scope, denies: Iterable[Deny] = ()) -> Decision:
    outside = _outside(principal, scope)
    held = [] if outside else [b for b in principal.bindings if b.place in scope.chain]
    lent = [g for g in principal.grants if g.place in scope.chain]
    own = _visible(held, scope)
    shown = None if own else _lending(lent, READING[scope.chain[0][0]], scope)
    visible = own or shown is not None
    if denied := [rule for rule in denies if rule.place in scope.chain and covers(rule, key)]:
        first = max(denied, key=lambda rule: scope.chain.index(rule.place))  # the widest scope gives the reason
        reason = f"denied at {first.place[0]} {first.place[1]} for everybody: {first.reason or 'no reason given'}"
        return Decision(False, visible, reason, "deny", tuple(rule.id for rule in denied), shown)
    if giving := [b for b in held if key in b.keys]:
        first, ids = giving[0], tuple(b.id for b in giving)
        return Decision(True, True, f"role {first.role} at {first.place[0]} {first.place[1]}", "binding", ids)
    if grant := _lending(lent, key, scope):
        return Decision(True, True, _loan(grant), grant.kind, (grant.id,), grant)
    if key in EVERYBODY and visible:
        return Decision(True, True, "every verified caller may", "everybody", via=shown)
    if outside and not visible:
        return Decision(False, False, "a service account acts only inside its own project", "containment")
    return Decision(False, visible, _lacking(lent, key, scope), via=shown)


def _outside(principal: Principal, scope: Scope) -> bool:
    return bool(principal.project_id) and scope.project_id != principal.project_id and scope.chain[0] != PLATFORM


def _lending(lent: list[Grant], key: str, scope: Scope) -> Grant | None:
    return next((grant for grant in lent if key in grant.keys and _still_lends(grant, key, scope)), None)


def _still_lends(grant: Grant, key: str, scope: Scope) -> bool:
    """Return whether the grant is still valid for this key: the grantor of a delegation must hold the key, and the
    administrator of a break-glass must still be allowed to open one. Deny rules were checked before."""
    if grant.kind == BREAK_GLASS:
        return evaluate(grant.lender, BREAK_THE_GLASS, Scope()).allowed
    appoints = key not in OPERATOR_KEYS or evaluate(grant.lender, APPOINT_OPERATOR, scope).allowed
    return appoints and evaluate(grant.lender, key, scope).allowed


def _loan(grant: Grant) -> str:
    where = f"{grant.place[0]} {grant.place[1]}"
    if grant.kind == BREAK_GLASS:
        return f"break-glass {grant.id} at {where}"
    return f"on behalf of {grant.lender.name} ({grant.lender.id}) by delegation {grant.id} at {where}"


def _lacking(lent: list[Grant], key: str, scope: Scope) -> str:
    if grant := next((grant for grant in lent if key in grant.keys), None):
        return f"{grant.kind.replace('_', '-')} {grant.id} names {key}, but {grant.lender.name} no longer holds it"
    return f"no binding {'at the platform' if scope.chain[0] == PLATFORM else 'here'} holds {key}"


def covers(rule: Deny, key: str) -> bool:
    """Return whether a deny rule denies this key. An invalid rule denies every key except those needed to repair it."""
    if key in UNDENIABLE:
        return False
    if not isinstance(rule.keys, list | tuple) or not rule.keys:
        return True
    return any(_matches(pattern, key) for pattern in rule.keys)


def _matches(pattern: JsonValue, key: str) -> bool:
    if not isinstance(pattern, str) or not PATTERN.fullmatch(pattern):
        return True
    return key.startswith(pattern[:-1]) if pattern.endswith("*") else key == pattern


def _visible(held: list[Binding], scope: Scope) -> bool:
    """Return whether one of these bindings includes reading the scope. Every caller can see the platform scope."""
    if scope.chain[0] == PLATFORM:
        return True
    reading = READING[scope.chain[0][0]]
    return any(reading in b.keys for b in held)


def keys_at(principal: Principal, scope: Scope) -> frozenset[str]:
    return frozenset(key for b in principal.bindings if b.place in scope.chain for key in b.keys)
