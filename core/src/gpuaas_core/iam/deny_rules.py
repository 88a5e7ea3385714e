"""Deny rules: permissions denied to every principal on the platform, in a tenant or in a project.

Deny rules are evaluated before role bindings, so no role overrides a deny rule. A new rule takes effect on the next
request.
"""

from sqlalchemy import bindparam, delete, insert

from ..authz.context import Context
from ..authz.evaluate import PATTERN, PLATFORM, Deny, covers
from ..authz.permissions import PERMISSIONS, UNDENIABLE
from ..authz.rules import DENY_RULES, DenyRuleRow, deny_rules
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy.reads import ids_of_projects_in, scope_in_tenant
from . import schemas
from .errors import PermissionUnknown, Undeniable

declare(
    {
        "tenancy.deny.created": "A deny rule was created: every principal loses the denied permissions at the scope.",
        "tenancy.deny.removed": "A deny rule was removed; roles grant the permissions again.",
    }
)

_d = deny_rules.c
_BY_ID = DENY_RULES.where(_d.id == bindparam("rule"))
_OF_PLATFORM = DENY_RULES.where(_d.scope_kind == PLATFORM[0], _d.scope_id == PLATFORM[1]).order_by(_d.id)
_OF_TENANT = DENY_RULES.where(
    (_d.scope_kind == "tenant") & (_d.scope_id == bindparam("tenant"))
    | (_d.scope_kind == "project") & _d.scope_id.in_(ids_of_projects_in(bindparam("tenant")))
).order_by(_d.id)


def create_deny(ctx: Context, body: schemas.CreateDeny, project_id: str | None = None) -> DenyRuleRow:
    scope = ctx.scope if project_id is None else scope_in_tenant(ctx.tx, ctx.scope.tenant_id, project_id)
    kind, where = scope.chain[0]
    keys = sorted(set(body.permissions))
    for key in keys:
        _check(key)
    rule_id = ctx.resource_id = new_id("deny")
    row = {"id": rule_id, "scope_kind": kind, "scope_id": where, "permissions": keys, "reason": body.reason}
    ctx.tx.execute(insert(deny_rules).values(**row, created_by=ctx.principal.id, created_at=ctx.now))
    ctx.emit("tenancy.deny.created", rule_id, {"permissions": keys, "reason": body.reason}, scope=scope)
    ctx.rights_changed(where)
    return _BY_ID.one(ctx.tx, rule=rule_id)


def remove_deny(ctx: Context, rule_id: str) -> DenyRuleRow:
    row = next((row for row in _here(ctx) if row.id == rule_id), None)
    if row is None:
        raise NotFound("There is no such deny rule here.")
    ctx.resource_id = rule_id
    ctx.tx.execute(delete(deny_rules).where(deny_rules.c.id == rule_id))
    ctx.emit("tenancy.deny.removed", rule_id, {"permissions": row.permissions})
    ctx.rights_changed(row.scope_id)
    return row


def list_denies(ctx: Context) -> list[schemas.DenyView]:
    return [deny_view(row) for row in _here(ctx)]


def deny_view(row: DenyRuleRow) -> schemas.DenyView:
    return schemas.DenyView.model_validate(row)


def _here(ctx: Context) -> list[DenyRuleRow]:
    """Return the deny rules of the request's scope: those of the platform, or those of a tenant and its projects."""
    if ctx.scope.chain[0] == PLATFORM:
        return _OF_PLATFORM.all(ctx.tx)
    return _OF_TENANT.all(ctx.tx, tenant=ctx.scope.tenant_id)


def _check(pattern: str) -> None:
    if pattern in UNDENIABLE:
        raise Undeniable(f"{pattern!r} cannot be denied: it is needed to list and remove deny rules.")
    if not PATTERN.fullmatch(pattern) or not any(covers(Deny("", PLATFORM, [pattern]), key) for key in PERMISSIONS):
        raise PermissionUnknown(f"There is no permission and no family {pattern!r}.")
