"""Role bindings: which principal has which role in which scope.

Called by the routes of this room, and by identity, which binds roles to the accounts it creates.
"""

from sqlalchemy import Connection, bindparam, delete, select

from ..authz.context import Context
from ..authz.evaluate import Scope
from ..events.event_log import declare
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..tenancy.reads import project_scope, scope_in_tenant
from . import roles, schemas
from .directory import find_principal
from .errors import RoleNotBindable
from .rows import BindingId, BindingRow, MemberRow
from .tables import principals, role_bindings

declare(
    {
        "tenancy.binding.created": "A role was bound to a principal at a scope.",
        "tenancy.binding.removed": "A role binding was removed; the principal no longer has the role at the scope.",
    }
)

_b, _p = role_bindings.c, principals.c
BINDING_ID = _b.id
BINDINGS = Query(select(role_bindings), BindingRow)
_BY_ID = BINDINGS.where(_b.id == bindparam("binding"))
_SAME = select(_b.id).where(
    _b.principal_id == bindparam("principal"),
    _b.role == bindparam("role"),
    _b.scope_kind == bindparam("kind"),
    _b.scope_id == bindparam("where"),
)
_ROLES = select(_b.role).where(_b.principal_id == bindparam("principal")).order_by(_b.role)
_MEMBERS = Query(
    select(role_bindings, _p.name, _p.kind, _p.email, _p.disabled_at).join(principals, _p.id == _b.principal_id),
    MemberRow,
).where(_b.scope_kind == bindparam("kind"), _b.scope_id == bindparam("where"))


def create_binding(ctx: Context, tenant_id: str, body: schemas.CreateBinding) -> BindingRow:
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
    return _BY_ID.one(ctx.tx, binding=binding_id)


def remove_binding(ctx: Context, tenant_id: str, binding_id: str) -> BindingRow:
    """Remove a role binding of the tenant, effective on the principal's next request. Raises 404 if the tenant has no
    such binding, or if it is the binding of an enrolled node."""
    row = _BY_ID.first(ctx.tx, binding=binding_id)
    if row is None or row.tenant_id != tenant_id or row.scope_kind not in ("tenant", "project"):
        raise NotFound("There is no such role binding in this tenant.")
    ctx.resource_id = binding_id
    ctx.tx.execute(delete(role_bindings).where(_b.id == binding_id))
    facts = {"principal_id": row.principal_id, "role": row.role, "scope_kind": row.scope_kind, "scope_id": row.scope_id}
    scope = ctx.scope if row.scope_kind == "tenant" else project_scope(ctx.tx, row.scope_id)
    ctx.emit("tenancy.binding.removed", binding_id, facts, scope=scope)
    ctx.rights_changed(row.principal_id)
    return row


def bind(
    tx: Connection, principal_id: str, role: str, kind: str, where: str, tenant_id: str | None, now: int
) -> BindingId:
    """Bind a role to a principal in a scope and return the id of the binding. If the same binding exists already,
    return its id."""
    row = {"id": new_id("bind"), "principal_id": principal_id, "role": role, "scope_kind": kind, "scope_id": where}
    new = insert_into(tx, role_bindings).values(**row, tenant_id=tenant_id, created_at=now)
    tx.execute(new.on_conflict_do_nothing())
    same = {"principal": principal_id, "role": role, "kind": kind, "where": where}
    return BindingId(tx.execute(_SAME, same).scalar_one())


def unbind_all(tx: Connection, principal_id: str) -> None:
    tx.execute(delete(role_bindings).where(role_bindings.c.principal_id == principal_id))


def bindings_in(tenant_id: str) -> Query[BindingRow]:
    return BINDINGS.where(_b.tenant_id == tenant_id)


def roles_held_by(tx: Connection, principal_id: str) -> list[str]:
    return list(tx.execute(_ROLES, {"principal": principal_id}).scalars())


def members_of(tx: Connection, scope: Scope) -> list[schemas.ProjectMemberView]:
    """Return the members of a project: one entry per role binding at the project itself or at its tenant."""
    members: list[schemas.ProjectMemberView] = []
    for kind, where in scope.chain:
        if kind in ("project", "tenant"):
            members += [_member(row) for row in _MEMBERS.all(tx, kind=kind, where=where)]
    return sorted(members, key=lambda member: (member.name, member.principal_id, member.binding_id))


def _member(row: MemberRow) -> schemas.ProjectMemberView:
    more = {"binding_id": row.id, "disabled": row.disabled_at is not None}
    return schemas.ProjectMemberView.model_validate(vars(row) | more)
