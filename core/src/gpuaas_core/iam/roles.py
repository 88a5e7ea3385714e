"""System roles (data in `authz/`) and custom roles of a tenant: which role can be bound where, and by whom."""

from sqlalchemy import Connection, bindparam, delete, select

from ..authz.context import Context
from ..authz.evaluate import Principal, Scope, keys_at
from ..authz.permissions import APPOINT_OPERATOR, APPOINTED_BY, BINDABLE, OPERATOR_KEYS, PERMISSIONS, ROLES
from ..authz.rules import decide
from ..events.event_log import declare
from ..kit.db import insert_new
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from . import schemas
from .errors import (
    GrantExceedsOwn,
    OperatorAppointmentNeeded,
    PermissionUnknown,
    RoleInUse,
    RoleNotBindable,
    RoleTaken,
)
from .rows import CustomRoleRow
from .tables import custom_roles, role_bindings

declare(
    {
        "tenancy.role.created": "A custom role was created in the tenant.",
        "tenancy.role.deleted": "A custom role of the tenant was deleted; it was not bound to any principal.",
    }
)

CUSTOM_ROLES_BIND_AT = frozenset({"tenant", "project"})
_OF_TENANT = Query(select(custom_roles), CustomRoleRow).where(custom_roles.c.tenant_id == bindparam("tenant"))
_NAMED = _OF_TENANT.where(custom_roles.c.name == bindparam("name"))
_ALL = _OF_TENANT.order_by(custom_roles.c.name)
_BOUND = select(role_bindings.c.id).where(
    role_bindings.c.tenant_id == bindparam("tenant"), role_bindings.c.role == bindparam("role")
)


def create_role(ctx: Context, tenant_id: str, body: schemas.CreateRole) -> CustomRoleRow:
    """Create a custom role, a named set of permissions. Roles are immutable: for another set of permissions, create
    another role."""
    keys = sorted(set(body.permissions))
    if unknown := [key for key in keys if key not in PERMISSIONS]:
        raise PermissionUnknown(f"There is no permission {unknown[0]!r}.")
    if missing := set(keys) - keys_at(ctx.principal, ctx.scope):
        raise GrantExceedsOwn(f"You do not have these permissions here: {', '.join(sorted(missing)[:5])}.")
    role_id = ctx.resource_id = new_id("role")
    row = {
        "id": role_id,
        "tenant_id": tenant_id,
        "name": body.name,
        "permissions": keys,
        "created_by": ctx.principal.id,
    }
    if not insert_new(ctx.tx, custom_roles, **row, created_at=ctx.now):
        raise RoleTaken(f"The tenant has a role {body.name!r}.")
    ctx.emit("tenancy.role.created", role_id, {"name": body.name, "permissions": keys})
    return _NAMED.one(ctx.tx, tenant=tenant_id, name=body.name)


def delete_role(ctx: Context, tenant_id: str, name: str) -> CustomRoleRow:
    row = _NAMED.first(ctx.tx, tenant=tenant_id, name=name)
    if row is None:
        raise NotFound(f"The tenant has no custom role {name!r}.")
    if ctx.tx.execute(_BOUND, {"tenant": tenant_id, "role": name}).first():
        raise RoleInUse(f"The role {name!r} is still bound to a principal.")
    ctx.resource_id = row.id
    ctx.tx.execute(delete(custom_roles).where(custom_roles.c.id == row.id))
    ctx.emit("tenancy.role.deleted", row.id, {"name": name})
    return row


def list_roles(tx: Connection, tenant_id: str) -> list[schemas.RoleView]:
    """Return the roles that can be bound in this tenant: first the system roles, then the tenant's custom roles."""
    system = [
        schemas.RoleView(name=name, permissions=sorted(ROLES[name]), bindable_at=sorted(places), system=True)
        for name, places in BINDABLE.items()
        if "platform" not in places
    ]
    return system + [role_view(row) for row in _ALL.all(tx, tenant=tenant_id)]


def role_view(row: CustomRoleRow) -> schemas.RoleView:
    places = sorted(CUSTOM_ROLES_BIND_AT)
    return schemas.RoleView(name=row.name, permissions=row.permissions, bindable_at=places, system=False)


def role_keys(tx: Connection, tenant_id: str | None, name: str) -> frozenset[str]:
    if name in ROLES:
        return ROLES[name]
    row = _NAMED.first(tx, tenant=tenant_id, name=name)
    return frozenset(row.permissions or ()) if row else frozenset()


def check_bindable(tx: Connection, tenant_id: str | None, name: str, kind: str) -> None:
    places = BINDABLE.get(name, frozenset())
    if not places and name not in ROLES and role_keys(tx, tenant_id, name):
        places = CUSTOM_ROLES_BIND_AT
    if kind not in places:
        raise RoleNotBindable(f"The role {name!r} does not exist or cannot be bound at a {kind}.")


def check_holds_all(tx: Connection, grantor: Principal, role: str, scope: Scope) -> None:
    appoint = APPOINTED_BY.get(role)
    if appoint and decide(tx, grantor, appoint, scope).allowed:
        return
    given = role_keys(tx, scope.tenant_id, role)
    if given & OPERATOR_KEYS:
        check_appoints(tx, grantor, scope, f"The role {role!r}")
    missing = given - keys_at(grantor, scope)
    if missing:
        raise GrantExceedsOwn(f"{role!r} contains permissions you do not have here: {', '.join(sorted(missing)[:5])}.")


def check_appoints(tx: Connection, grantor: Principal, scope: Scope, what: str) -> None:
    """Raise 403 unless the grantor may appoint operators. Called before a role, delegation or key makes an account an
    operator."""
    if not decide(tx, grantor, APPOINT_OPERATOR, scope).allowed:
        raise OperatorAppointmentNeeded(
            f"{what} gives root on the nodes of a project, and {grantor.name} lacks the permission "
            f"{APPOINT_OPERATOR!r} there.",
            extra={"permission": APPOINT_OPERATOR},
        )
