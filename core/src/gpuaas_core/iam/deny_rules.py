"""Deny rules: permissions denied to every principal on the platform, in a tenant or in a project.

They are evaluated before role bindings, so no role overrides one. A rule takes effect on the next request.
"""

from typing import Any

from sqlalchemy import Row, Select, delete, insert, select

from ..authz.context import Context
from ..authz.evaluate import PATTERN, PLATFORM, Deny, covers
from ..authz.permissions import PERMISSIONS, UNDENIABLE
from ..authz.rules import deny_rules
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy.reads import ids_of_projects_in, scope_in_tenant
from . import schemas
from .errors import PermissionUnknown, Undeniable

declare(
    {
        "tenancy.deny.created": "Deny rule created: every principal loses the permissions at the scope.",
        "tenancy.deny.removed": "Deny rule removed.",
    }
)


def create_deny(ctx: Context, body: schemas.CreateDeny, project_id: str | None = None) -> Row[Any]:
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
    return ctx.tx.execute(select(deny_rules).where(deny_rules.c.id == rule_id)).one()


def remove_deny(ctx: Context, rule_id: str) -> Row[Any]:
    row = ctx.tx.execute(_at(ctx).where(deny_rules.c.id == rule_id)).first()
    if row is None:
        raise NotFound("There is no such deny rule here.")
    ctx.resource_id = rule_id
    ctx.tx.execute(delete(deny_rules).where(deny_rules.c.id == rule_id))
    ctx.emit("tenancy.deny.removed", rule_id, {"permissions": row.permissions})
    ctx.rights_changed(row.scope_id)
    return row


def list_denies(ctx: Context) -> list[schemas.DenyView]:
    return [deny_view(row) for row in ctx.tx.execute(_at(ctx).order_by(deny_rules.c.id))]


def deny_view(row: Row[Any]) -> schemas.DenyView:
    return schemas.DenyView.model_validate(row)


def _at(ctx: Context) -> Select[Any]:
    """The rules at this scope; those of a tenant include its projects, never the platform."""
    kind, where = ctx.scope.chain[0]
    here = (deny_rules.c.scope_kind == kind) & (deny_rules.c.scope_id == where)
    if ctx.scope.chain[0] == PLATFORM:
        return select(deny_rules).where(here)
    mine = ids_of_projects_in(ctx.scope.tenant_id)
    return select(deny_rules).where(here | (deny_rules.c.scope_kind == "project") & deny_rules.c.scope_id.in_(mine))


def _check(pattern: str) -> None:
    if pattern in UNDENIABLE:
        raise Undeniable(f"{pattern!r} cannot be denied: it is needed to list and remove deny rules.")
    if not PATTERN.fullmatch(pattern) or not any(covers(Deny("", PLATFORM, [pattern]), key) for key in PERMISSIONS):
        raise PermissionUnknown(f"There is no permission and no family {pattern!r}.")
