"""The one evaluator: a pure function of (principal, key, scope chain) to a decision with its reason.

Order: containment (a service account never leaves its project), then bindings, then default deny.
"""

from dataclasses import dataclass, field

from .permissions import EVERYBODY, ROLES

Place = tuple[str, str]  # ("project", "prj_…")
PLATFORM: Place = ("platform", "*")


@dataclass(frozen=True)
class Binding:
    role: str
    place: Place


@dataclass(frozen=True)
class Principal:
    id: str
    kind: str  # user, service_account, node
    name: str
    tenant_id: str | None = None
    project_id: str | None = None  # service accounts: the one project they live in
    email: str | None = None
    bindings: tuple[Binding, ...] = field(default=())


@dataclass(frozen=True)
class Scope:
    """Where something is: the chain from the thing itself up to the platform."""

    chain: tuple[Place, ...] = (PLATFORM,)
    tenant_id: str | None = None
    project_id: str | None = None

    @property
    def id(self) -> str:
        return self.chain[0][1]


@dataclass(frozen=True)
class Decision:
    allowed: bool
    visible: bool
    reason: str


def evaluate(principal: Principal, key: str, scope: Scope) -> Decision:
    if principal.project_id and scope.project_id != principal.project_id and scope.chain[0] != PLATFORM:
        return Decision(False, False, "a service account acts only inside its own project")
    held = [b for b in principal.bindings if b.place in scope.chain]
    if key in EVERYBODY:
        return Decision(True, True, "every verified caller may")
    for binding in held:
        if key in ROLES.get(binding.role, frozenset()):
            return Decision(True, True, f"role {binding.role} at {binding.place[0]} {binding.place[1]}")
    if scope.chain[0] == PLATFORM:
        return Decision(False, True, f"no binding at the platform holds {key}")
    return Decision(False, _visible(held, scope), f"no binding here holds {key}")


def _visible(held: list[Binding], scope: Scope) -> bool:
    """One sees a place when some binding that covers it can read that kind of place."""
    kind = scope.chain[0][0]
    reading = {"project": "tenancy.project.read", "tenant": "tenancy.tenant.read", "node": "capacity.node.read"}[kind]
    return any(reading in ROLES.get(b.role, frozenset()) for b in held)


def keys_at(principal: Principal, scope: Scope) -> frozenset[str]:
    held = [ROLES.get(b.role, frozenset()) for b in principal.bindings if b.place in scope.chain]
    return frozenset().union(*held)
