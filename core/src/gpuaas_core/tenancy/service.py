"""Tenants, projects, people, role bindings: the acts."""

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from ..access.context import Context
from ..access.evaluate import PLATFORM, Principal, Scope
from ..access.permissions import PLATFORM_ADMIN
from ..iam import roles
from ..kit.db import insert_into
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..ledger import audit
from ..ledger.events import declare
from . import schemas, visibility
from .errors import EmailTaken, RoleNotBindable, SlugTaken
from .reads import project_scope, tenant_scope
from .tables import principals, projects, role_bindings, tenants

declare(
    {
        "tenancy.tenant.created": "A tenant exists.",
        "tenancy.project.created": "A project exists.",
        "tenancy.user.created": "A local user exists.",
        "tenancy.binding.created": "A principal holds a role at a scope.",
        "tenancy.binding.removed": "A principal no longer holds a role at a scope.",
    }
)


def create_tenant(ctx: Context, body: schemas.CreateTenant) -> Row[Any]:
    tenant_id = ctx.resource_id = new_id("ten")
    _insert(
        ctx.tx, tenants, SlugTaken(f"A tenant {body.slug!r} exists."), id=tenant_id, **vars(body), created_at=ctx.now
    )
    scope = tenant_scope(ctx.tx, tenant_id)
    ctx.emit("tenancy.tenant.created", tenant_id, {"slug": body.slug}, scope=scope)
    return _one(ctx.tx, tenants, tenant_id)


def create_project(ctx: Context, tenant_id: str, body: schemas.CreateProject) -> Row[Any]:
    project_id = ctx.resource_id = new_id("prj")
    row = {"id": project_id, "tenant_id": tenant_id, "created_at": ctx.now}
    _insert(ctx.tx, projects, SlugTaken(f"The tenant has a project {body.slug!r}."), **row, **vars(body))
    ctx.emit("tenancy.project.created", project_id, {"slug": body.slug}, scope=project_scope(ctx.tx, project_id))
    return _one(ctx.tx, projects, project_id)


def create_user(ctx: Context, tenant_id: str, body: schemas.CreateUser, password_hash: str) -> Row[Any]:
    return add_user(ctx, tenant_id, email=body.email, name=body.name, password_hash=password_hash)


def add_user(ctx: Context, tenant_id: str, *, email: str, name: str, password_hash: str | None) -> Row[Any]:
    """Without a password the person signs in through an identity provider."""
    user_id = ctx.resource_id = new_id("usr")
    row = {"id": user_id, "kind": "user", "name": name, "tenant_id": tenant_id, "created_at": ctx.now}
    taken = EmailTaken(f"{email} already has an account in this tenant.")
    _insert(ctx.tx, principals, taken, **row, email=email, password_hash=password_hash)
    ctx.emit("tenancy.user.created", user_id, {})
    return _one(ctx.tx, principals, user_id)


def create_binding(ctx: Context, tenant_id: str, body: schemas.CreateBinding) -> Row[Any]:
    kind, where = ("tenant", tenant_id) if body.project_id is None else ("project", body.project_id)
    scope = ctx.scope if body.project_id is None else _project_of(ctx.tx, tenant_id, body.project_id)
    principal = ctx.tx.execute(select(principals).where(principals.c.id == body.principal_id)).first()
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
    return _one(ctx.tx, role_bindings, binding_id)


def remove_binding(ctx: Context, tenant_id: str, binding_id: str) -> Row[Any]:
    """Effective on the next request of whoever held it. A machine's own role stays while the machine does."""
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


def bind(tx: Connection, who: str, role: str, kind: str, where: str, tenant_id: str | None, now: int) -> str:
    """One binding per (who, role, place): asking again gives the first."""
    same = select(role_bindings.c.id).where(
        role_bindings.c.principal_id == who,
        role_bindings.c.role == role,
        role_bindings.c.scope_kind == kind,
        role_bindings.c.scope_id == where,
    )
    row = {"id": new_id("bind"), "principal_id": who, "role": role, "scope_kind": kind, "scope_id": where}
    new = insert_into(tx, role_bindings).values(**row, tenant_id=tenant_id, created_at=now)
    tx.execute(new.on_conflict_do_nothing())
    return tx.execute(same).scalar_one()


def whoami(tx: Connection, principal: Principal) -> schemas.WhoamiView:
    return visibility.whoami(tx, principal, principal_view(_one(tx, principals, principal.id)))


def principal_view(row: Row[Any]) -> schemas.PrincipalView:
    return schemas.PrincipalView.model_validate(dict(row._mapping) | {"disabled": row.disabled_at is not None})


def bootstrap_admin(tx: Connection, email: str, password_hash: str, now: int) -> str:
    """The first platform administrator, made on the platform's own machine; running it again changes the password."""
    ours = (principals.c.email == email) & principals.c.tenant_id.is_(None)
    row = tx.execute(select(principals).where(ours)).first()
    if row is None:
        user_id = new_id("usr")
        person = {"id": user_id, "kind": "user", "name": "Platform administrator", "email": email}
        tx.execute(insert(principals).values(**person, password_hash=password_hash, created_at=now))
    else:
        user_id = row.id
        tx.execute(update(principals).where(principals.c.id == user_id).values(password_hash=password_hash))
    bind(tx, user_id, PLATFORM_ADMIN, *PLATFORM, None, now)
    audit.by_operator(tx, "platform.admin.create", f"{'new' if row is None else 'new password for'} {user_id}", now)
    return user_id


def _project_of(tx: Connection, tenant_id: str, project_id: str) -> Scope:
    scope = project_scope(tx, project_id)
    if scope.tenant_id != tenant_id:
        raise NotFound("There is no such project in this tenant.")
    return scope


def _insert(tx: Connection, table: Any, taken: Exception, **values: Any) -> None:
    try:
        with tx.begin_nested():
            tx.execute(insert(table).values(**values))
    except IntegrityError as error:
        raise taken from error


def _one(tx: Connection, table: Any, row_id: str) -> Row[Any]:
    return tx.execute(select(table).where(table.c.id == row_id)).one()
