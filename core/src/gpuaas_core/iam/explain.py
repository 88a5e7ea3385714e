"""Explains why a principal has a permission or not, with the decision of the evaluator in `authz/`."""

from sqlalchemy import Connection

from ..authz.evaluate import BREAK_GLASS, Deny, Grant, Principal, Scope, evaluate
from ..authz.permissions import PERMISSIONS
from ..authz.rules import rules_at
from ..kit.problems import UNSEEN, NotFound
from ..tenancy.reads import project_scope, tenant_scope
from . import schemas
from .directory import find_principal
from .errors import PermissionUnknown
from .principals import principal_of, with_grants
from .roles import list_roles
from .rows import PrincipalRow


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
    """Explain why another principal has a permission or not. Raises 404 unless the principal belongs to the tenant or
    has an active break-glass there."""
    row = find_principal(tx, principal_id)
    if row is None or (row.tenant_id != scope.tenant_id and not _has_break_glass(tx, row, scope, now)):
        raise NotFound("There is no such principal in this tenant.")
    if row.disabled_at is not None:
        explanation = explain(tx, Principal(row.id, row.kind, row.name, row.tenant_id), permission, scope)
        none: list[schemas.MatchedRule] = []
        changes = {"allowed": False, "reason": f"{row.name} is disabled", "decided_by": "disabled", "matched": none}
        return explanation.model_copy(update=changes)
    return explain(tx, with_grants(tx, principal_of(tx, row), now), permission, scope)


def explain_myself(
    tx: Connection, me: Principal, permission: str, tenant_id: str | None, project_id: str | None
) -> schemas.ExplainView:
    """Explain why the caller has a permission or not. Raises 404 if the scope does not exist or the caller may not see
    it."""
    explanation = explain(tx, me, permission, _scope(tx, tenant_id, project_id))
    if not explanation.visible:
        raise NotFound(UNSEEN)
    return explanation


def my_permissions(
    tx: Connection, me: Principal, tenant_id: str | None, project_id: str | None
) -> schemas.PermissionsView:
    scope = _scope(tx, tenant_id, project_id)
    denies = rules_at(tx, scope.chain)
    decided = {key: evaluate(me, key, scope, denies) for key in PERMISSIONS}
    if not any(decision.visible for decision in decided.values()):
        raise NotFound(UNSEEN)
    kind, where = scope.chain[0]
    held = sorted(key for key, decision in decided.items() if decision.allowed)
    return schemas.PermissionsView(scope_kind=kind, scope_id=where, permissions=held)


def _scope(tx: Connection, tenant_id: str | None, project_id: str | None) -> Scope:
    if project_id is not None:
        return project_scope(tx, project_id)
    return tenant_scope(tx, tenant_id) if tenant_id is not None else Scope()


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
    return (
        f"lent by {grant.lender.name} ({grant.lender.id})"
        if grant.on_behalf_of
        else "opened by a platform administrator"
    )


def _has_break_glass(tx: Connection, row: PrincipalRow, scope: Scope, now: int) -> bool:
    grants = with_grants(tx, principal_of(tx, row), now).grants
    return any(grant.kind == BREAK_GLASS and grant.place == ("tenant", scope.tenant_id) for grant in grants)
