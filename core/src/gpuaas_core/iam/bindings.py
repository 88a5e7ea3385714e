"""Role bindings: which principal holds which role at which scope.

Called by the routes of this room, and by identity, which binds roles to the accounts it creates.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, delete, select

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..tenancy.reads import project_scope, scope_in_tenant
from . import roles, schemas
from .directory import find_principal
from .errors import RoleNotBindable
from .tables import principals, role_bindings

declare(
    {
        "tenancy.binding.created": "Role bound to a principal at a scope.",
        "tenancy.binding.removed": "Role binding removed; the principal no longer holds the role at the scope.",
    }
)


def create_binding(ctx: Context, tenant_id: str, body: schemas.CreateBinding) -> Row[Any]:
    kind, where = ("tenant", tenant_id) if body.project_id is None else ("project", body.project_id)
    scope = ctx.scope if body.project_id is None else scope_in_tenant(ctx.tx, tenant_id, body.project_id)
    principal = find_principal(ctx.tx, body.principal_id)
    if principal is None or principal.tenant_id != tenant_id or principal.deleted_at is not None:
        raise NotFound("There is no such principal in this tenant.")
    roles.check_bindable(ctx.tx, tenant_id, body.role, kind)
    if principal.kind == "service_account" and principal.project_id != body.project_id:
        raise RoleNotBindable("A service account holds roles only in its own project.")
    roles.check_holds_all(ctx.tx, ctx.principal, body.role, scope)
    binding_id = ctx.resource_id = bind(ctx.tx, body.principal_id, body.role, kind, where, tenant_id, ctx.now)
    facts = {"principal_id": body.principal_id, "role": body.role, "scope_kind": kind, "scope_id": where}
    ctx.emit("tenancy.binding.created", binding_id, facts, scope=scope)
    ctx.rights_changed(body.principal_id)
    return ctx.tx.execute(select(role_bindings).where(role_bindings.c.id == binding_id)).one()


def remove_binding(ctx: Context, tenant_id: str, binding_id: str) -> Row[Any]:
    """Effective on the principal's next request. The role of a node stays bound as long as the node is enrolled."""
    mine = (role_bindings.c.id == binding_id) & (role_bindings.c.tenant_id == tenant_id)
    row = ctx.tx.execute(select(role_bindings).where(mine)).first()
    if row is None or row.scope_kind not in ("tenant", "project"):
        raise NotFound("There is no such role binding in this tenant.")
    ctx.resource_id = binding_id
    ctx.tx.execute(delete(role_bindings).where(mine))
    facts = {"principal_id": row.principal_id, "role": row.role, "scope_kind": row.scope_kind, "scope_id": row.scope_id}
    scope = ctx.scope if row.scope_kind == "tenant" else project_scope(ctx.tx, row.scope_id)
    ctx.emit("tenancy.binding.removed", binding_id, facts, scope=scope)
    ctx.rights_changed(row.principal_id)
    return row


def bind(tx: Connection, principal_id: str, role: str, kind: str, where: str, tenant_id: str | None, now: int) -> str:
    """One binding per principal, role and scope: binding again returns the id of the first."""
    same = select(role_bindings.c.id).where(
        role_bindings.c.principal_id == principal_id,
        role_bindings.c.role == role,
        role_bindings.c.scope_kind == kind,
        role_bindings.c.scope_id == where,
    )
    row = {"id": new_id("bind"), "principal_id": principal_id, "role": role, "scope_kind": kind, "scope_id": where}
    new = insert_into(tx, role_bindings).values(**row, tenant_id=tenant_id, created_at=now)
    tx.execute(new.on_conflict_do_nothing())
    return tx.execute(same).scalar_one()


def unbind_all(tx: Connection, principal_id: str) -> None:
    tx.execute(delete(role_bindings).where(role_bindings.c.principal_id == principal_id))


def bindings_in(tenant_id: str) -> Select[Any]:
    return select(role_bindings).where(role_bindings.c.tenant_id == tenant_id)


def roles_held_by(tx: Connection, principal_id: str) -> list[str]:
    held = select(role_bindings.c.role).where(role_bindings.c.principal_id == principal_id)
    return list(tx.execute(held.order_by(role_bindings.c.role)).scalars())


def members_of(tx: Connection, scope: Scope) -> list[schemas.ProjectMemberView]:
    """Every principal with a role in the project, bound at the project itself or at its tenant."""
    members: list[schemas.ProjectMemberView] = []
    columns = (principals.c.name, principals.c.kind, principals.c.email, principals.c.disabled_at)
    query = select(role_bindings, *columns).join(principals, principals.c.id == role_bindings.c.principal_id)
    for kind, where in scope.chain:
        if kind in ("project", "tenant"):
            bound_here = (role_bindings.c.scope_kind == kind) & (role_bindings.c.scope_id == where)
            members += [_member(row) for row in tx.execute(query.where(bound_here))]
    return sorted(members, key=lambda member: (member.name, member.principal_id, member.binding_id))


def _member(row: Row[Any]) -> schemas.ProjectMemberView:
    more = {"binding_id": row.id, "disabled": row.disabled_at is not None}
    return schemas.ProjectMemberView.model_validate(dict(row._mapping) | more)
