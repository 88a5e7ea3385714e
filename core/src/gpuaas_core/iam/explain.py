"""Why somebody may or may not do something, in the words of the one evaluator; and who holds what in a project."""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..access.evaluate import BREAK_GLASS, Deny, Grant, Principal, Scope, evaluate
from ..access.permissions import PERMISSIONS
from ..access.rules import rules_at
from ..kit.problems import UNSEEN, NotFound
from ..tenancy import schemas
from ..tenancy.errors import PermissionUnknown
from ..tenancy.reads import project_scope, tenant_scope
from ..tenancy.tables import principals, role_bindings
from .principals import principal_of, with_grants
from .roles import list_roles


def explain(tx: Connection, principal: Principal, permission: str, scope: Scope) -> schemas.ExplainView:
    if permission not in PERMISSIONS:
        raise PermissionUnknown(f"There is no permission {permission!r}.")
    denies = rules_at(tx, scope.chain)
    decision = evaluate(principal, permission, scope, denies)
    kind, where = scope.chain[0]
    holding = [r.name for r in list_roles(tx, scope.tenant_id or "") if permission in r.permissions]
    return schemas.ExplainView(
        principal_id=principal.id,
        principal_name=principal.name,
        permission=permission,
        scope_kind=kind,
        scope_id=where,
        allowed=decision.allowed,
        visible=decision.visible,
        decided_by=decision.decided_by,
        reason=decision.reason,
        matched=_matched(principal, denies, decision.matched),
        roles_that_hold_it=holding if kind != "platform" else [],
    )


def explain_other(tx: Connection, principal_id: str, permission: str, scope: Scope, now: int) -> schemas.ExplainView:
    """Only for principals of the same tenant, and for those of the platform who broke its glass."""
    row = tx.execute(select(principals).where(principals.c.id == principal_id)).first()
    if row is None or (row.tenant_id != scope.tenant_id and not _broke_in(tx, row, scope, now)):
        raise NotFound("There is no such principal in this tenant.")
    if row.disabled_at is not None:
        asked = explain(tx, Principal(row.id, row.kind, row.name, row.tenant_id), permission, scope)
        changes = {"allowed": False, "reason": f"{row.name} is disabled", "decided_by": "disabled", "matched": []}
        return asked.model_copy(update=changes)
    return explain(tx, with_grants(tx, principal_of(tx, row), now), permission, scope)


def explain_myself(
    tx: Connection, me: Principal, permission: str, tenant_id: str | None, project_id: str | None
) -> schemas.ExplainView:
    """At a place one does not see the answer is the same as for a place that does not exist."""
    found = explain(tx, me, permission, _place(tx, tenant_id, project_id))
    if not found.visible:
        raise NotFound(UNSEEN)
    return found


def my_permissions(
    tx: Connection, me: Principal, tenant_id: str | None, project_id: str | None
) -> schemas.PermissionsView:
    scope = _place(tx, tenant_id, project_id)
    denies = rules_at(tx, scope.chain)
    decided = {key: evaluate(me, key, scope, denies) for key in PERMISSIONS}
    if not any(decision.visible for decision in decided.values()):
        raise NotFound(UNSEEN)
    kind, where = scope.chain[0]
    held = sorted(key for key, decision in decided.items() if decision.allowed)
    return schemas.PermissionsView(scope_kind=kind, scope_id=where, permissions=held)


def _place(tx: Connection, tenant_id: str | None, project_id: str | None) -> Scope:
    if project_id is not None:
        return project_scope(tx, project_id)
    return tenant_scope(tx, tenant_id) if tenant_id is not None else Scope()


def members_of(tx: Connection, scope: Scope) -> list[schemas.ProjectMemberView]:
    """Everybody whose roles reach into the project, from the project itself or from its tenant."""
    places = [place for place in scope.chain if place[0] in ("project", "tenant")]
    found: list[schemas.ProjectMemberView] = []
    for kind, where in places:
        query = select(
            role_bindings, principals.c.name, principals.c.kind, principals.c.email, principals.c.disabled_at
        )
        at = (role_bindings.c.scope_kind == kind) & (role_bindings.c.scope_id == where)
        rows = tx.execute(query.join(principals, principals.c.id == role_bindings.c.principal_id).where(at))
        found += [_member(row) for row in rows]
    return sorted(found, key=lambda member: (member.name, member.principal_id, member.binding_id))


def _member(row: Row[Any]) -> schemas.ProjectMemberView:
    more = {"binding_id": row.id, "disabled": row.disabled_at is not None}
    return schemas.ProjectMemberView.model_validate(dict(row._mapping) | more)


def _matched(principal: Principal, denies: list[Deny], ids: tuple[str, ...]) -> list[schemas.MatchedRule]:
    bindings = [
        schemas.MatchedRule(kind="binding", id=b.id, role=b.role, scope_kind=b.place[0], scope_id=b.place[1])
        for b in principal.bindings
        if b.id in ids
    ]
    rules = [
        schemas.MatchedRule(kind="deny", id=d.id, scope_kind=d.place[0], scope_id=d.place[1], reason=d.reason)
        for d in denies
        if d.id in ids
    ]
    lent = [
        schemas.MatchedRule(kind=g.kind, id=g.id, scope_kind=g.place[0], scope_id=g.place[1], reason=_lent_by(g))
        for g in principal.grants
        if g.id in ids
    ]
    return rules + bindings + lent


def _lent_by(grant: Grant) -> str:
    return f"lent by {grant.lender.name} ({grant.lender.id})" if grant.on_behalf_of else "opened and announced"


def _broke_in(tx: Connection, row: Row[Any], scope: Scope, now: int) -> bool:
    grants = with_grants(tx, principal_of(tx, row), now).grants
    return any(grant.kind == BREAK_GLASS and grant.place == ("tenant", scope.tenant_id) for grant in grants)
