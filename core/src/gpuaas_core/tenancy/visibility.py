"""Which projects a caller sees, chosen by the store: what it costs depends on the caller, not on the platform's size.

`seen_by` says in SQL what `access/evaluate.py` says of each project for `tenancy.project.read`: the caller's own
bindings, what is lent to it, and the deny rules, which are read once for all places. A test compares the two.
"""

from collections import defaultdict
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, false, or_, select, true

from ..access.evaluate import BREAK_GLASS, PLATFORM, READING, Deny, Grant, Place, Principal, Scope, covers, evaluate
from ..access.permissions import BREAK_THE_GLASS
from ..access.rules import deny_rules
from . import schemas
from .tables import projects, tenants

KEY = READING["project"]
MOST_SHOWN = 100  # projects in whoami; GET /v1/projects pages through all of them


def projects_seen(tx: Connection, principal: Principal, tenant_id: str | None = None) -> Select[Any]:
    """Every project the caller sees, of one tenant if it is named; for a page of it."""
    query = select(projects).where(seen_by(tx, principal))
    return query if tenant_id is None else query.where(projects.c.tenant_id == tenant_id)


def seen_by(tx: Connection, principal: Principal) -> ColumnElement[bool]:
    reached = or_(_held(principal), *_lent(principal))
    denied = [rule.place for rule in _rules_in_reach(tx, reached) if covers(rule, KEY)]
    return reached if not denied else and_(reached, ~_at(denied))


def whoami(tx: Connection, principal: Principal, about: schemas.PrincipalView) -> schemas.WhoamiView:
    seen = seen_by(tx, principal)
    first = tx.execute(select(projects).where(seen).order_by(projects.c.id).limit(MOST_SHOWN + 1)).all()
    shown = first[:MOST_SHOWN]
    bound = [place[1] for place in {b.place for b in principal.bindings} if place[0] == "tenant"]
    theirs = select(projects.c.tenant_id).where(seen)
    homes = tx.execute(select(tenants).where(tenants.c.id.in_(theirs) | tenants.c.id.in_(bound)).order_by(tenants.c.id))
    roles_of, listed = Roles(principal), {project.id for project in shown}
    return schemas.WhoamiView(
        principal=about,
        tenants=[schemas.TenantView.model_validate(tenant) for tenant in homes],
        projects=[_membership(roles_of, project) for project in shown],
        more_projects=len(first) > MOST_SHOWN,
        roles=[
            schemas.HeldRole(role=b.role, scope_kind=b.place[0], scope_id=b.place[1])
            for b in principal.bindings
            if b.place[0] != "project" or b.place[1] in listed
        ],
    )


class Roles:
    """The roles a caller holds in each project: its own there, and those of the whole tenant."""

    def __init__(self, principal: Principal) -> None:
        self._at: dict[Place, set[str]] = defaultdict(set)
        for binding in principal.bindings:
            self._at[binding.place].add(binding.role)

    def __call__(self, project: Row[Any]) -> list[str]:
        return sorted(self._at.get(("project", project.id), set()) | self._at.get(("tenant", project.tenant_id), set()))


def view(roles_of: Roles, project: Row[Any]) -> schemas.ProjectView:
    return schemas.ProjectView.model_validate(dict(project._mapping) | {"roles": roles_of(project)})


def _membership(roles_of: Roles, project: Row[Any]) -> schemas.ProjectMembership:
    return schemas.ProjectMembership(
        id=project.id, tenant_id=project.tenant_id, slug=project.slug, name=project.name, roles=roles_of(project)
    )


def _held(principal: Principal) -> ColumnElement[bool]:
    """By its own bindings; a service account's reach its own project only."""
    places = _at(b.place for b in principal.bindings if KEY in b.keys)
    return places if not principal.project_id else and_(places, projects.c.id == principal.project_id)


def _lent(principal: Principal) -> list[ColumnElement[bool]]:
    """What is lent is seen while its lender sees it; one condition for each lender, however much each of them lends."""
    by_lender: dict[tuple[str, str], list[Grant]] = defaultdict(list)
    for grant in principal.grants:
        if KEY in grant.keys:
            by_lender[grant.kind, grant.lender.id].append(grant)
    found = []
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
    rows = tx.execute(select(deny_rules).where(near))
    return [Deny(row.id, (row.scope_kind, row.scope_id), row.permissions, row.reason) for row in rows]


def _at(places: Any) -> ColumnElement[bool]:
    """The projects that lie at one of these places or below it."""
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
