"""Finds the projects that a caller can see, in SQL: the cost depends on the caller, not on the size of the platform.

`seen_by` is the SQL form of `authz/evaluate.py` for `tenancy.project.read`: the caller's bindings, the permissions lent
to it, and the deny rules, which are read once for all scopes. A test compares the two.
"""

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, false, or_, select, true

from ..authz.evaluate import BREAK_GLASS, PLATFORM, READING, Deny, Grant, Place, Principal, Scope, covers, evaluate
from ..authz.permissions import BREAK_THE_GLASS
from ..authz.rules import DENY_RULES, deny_rules
from ..kit.rows import Query
from . import schemas
from .reads import PROJECTS, TENANTS
from .rows import ProjectRow, TenantRow
from .tables import projects, tenants

KEY = READING["project"]


def projects_seen(tx: Connection, principal: Principal, tenant_id: str | None = None) -> Query[ProjectRow]:
    """Build the query for the projects that the caller can see, in all tenants or in one tenant."""
    query = PROJECTS.where(seen_by(tx, principal))
    return query if tenant_id is None else query.where(projects.c.tenant_id == tenant_id)


def seen_by(tx: Connection, principal: Principal) -> ColumnElement[bool]:
    reached = or_(_held(principal), *_lent(principal))
    denied = [rule.place for rule in _rules_in_reach(tx, reached) if covers(rule, KEY)]
    return reached if not denied else and_(reached, ~_at(denied))


def first_projects(tx: Connection, seen: ColumnElement[bool], most: int) -> list[ProjectRow]:
    """Return at most `most` of the projects that match the condition `seen` (from `seen_by`), those with the lowest
    ids."""
    return PROJECTS.where(seen).order_by(projects.c.id).limit(most).all(tx)


def tenants_around(tx: Connection, principal: Principal, seen: ColumnElement[bool]) -> list[TenantRow]:
    """Return the tenants in which the caller has a role, and the tenants of the projects that the caller can see."""
    bound = [place[1] for place in {b.place for b in principal.bindings} if place[0] == "tenant"]
    either = tenants.c.id.in_(select(projects.c.tenant_id).where(seen)) | tenants.c.id.in_(bound)
    return TENANTS.where(either).order_by(tenants.c.id).all(tx)


class Roles:
    """The names of the caller's roles in each project, bound at the project or at its tenant."""

    def __init__(self, principal: Principal) -> None:
        self._at: dict[Place, set[str]] = defaultdict(set)
        for binding in principal.bindings:
            self._at[binding.place].add(binding.role)

    def __call__(self, project: ProjectRow) -> list[str]:
        return sorted(self._at.get(("project", project.id), set()) | self._at.get(("tenant", project.tenant_id), set()))


def view(roles_of: Roles, project: ProjectRow) -> schemas.ProjectView:
    return schemas.ProjectView.model_validate(vars(project) | {"roles": roles_of(project)})


def _held(principal: Principal) -> ColumnElement[bool]:
    """Build the SQL condition that a role binding of the principal makes the project visible. The bindings of a service
    account count only in its own project."""
    places = _at(b.place for b in principal.bindings if KEY in b.keys)
    return places if not principal.project_id else and_(places, projects.c.id == principal.project_id)


def _lent(principal: Principal) -> list[ColumnElement[bool]]:
    """Build one SQL condition per grantor: the project is visible by a break-glass, or by a delegation whose grantor
    can see it."""
    by_lender: dict[tuple[str, str], list[Grant]] = defaultdict(list)
    for grant in principal.grants:
        if KEY in grant.keys:
            by_lender[grant.kind, grant.lender.id].append(grant)
    found: list[ColumnElement[bool]] = []
    for (kind, _), grants in by_lender.items():
        lender = grants[0].lender
        if kind == BREAK_GLASS and not evaluate(lender, BREAK_THE_GLASS, Scope()).allowed:
            continue
        places = _at(grant.place for grant in grants)
        found.append(places if kind == BREAK_GLASS else and_(places, _held(lender)))
    return found


def _rules_in_reach(tx: Connection, reached: ColumnElement[bool]) -> list[Deny]:
    kind, where = deny_rules.c.scope_kind, deny_rules.c.scope_id
    near = or_(
        kind == PLATFORM[0],
        (kind == "tenant") & where.in_(select(projects.c.tenant_id).where(reached)),
        (kind == "project") & where.in_(select(projects.c.id).where(reached)),
    )
    return [row.rule for row in DENY_RULES.where(near).all(tx)]


def _at(places: Iterable[Place]) -> ColumnElement[bool]:
    """Build the SQL condition that the project is in one of these scopes."""
    by_kind: dict[str, set[str]] = defaultdict(set)
    for kind, where in places:
        by_kind[kind].add(where)
    if PLATFORM[1] in by_kind[PLATFORM[0]]:
        return true()
    conditions = [
        column.in_(sorted(by_kind[kind]))
        for kind, column in (("tenant", projects.c.tenant_id), ("project", projects.c.id))
        if by_kind[kind]
    ]
    return or_(*conditions) if conditions else false()
