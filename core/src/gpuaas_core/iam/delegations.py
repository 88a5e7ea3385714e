"""Delegations: a principal (the grantor) gives a service account (the grantee) some of the grantor's permissions, in
one project and until a set time.

The grantor must have each permission when it is delegated and on every use (`authz/evaluate.py`): if the grantor loses
a permission, the delegation loses it on the next request. The audit trail records both grantor and grantee.
"""

from dataclasses import replace

from sqlalchemy import Connection, bindparam, insert, select, update

from ..authz.context import Context
from ..authz.evaluate import evaluate
from ..authz.permissions import OPERATOR_KEYS, PERMISSIONS, UNLENDABLE
from ..authz.rules import rules_at
from ..events.event_log import declare
from ..kit.ids import new_id
from ..kit.problems import NotFound
from ..kit.rows import Query
from ..tenancy.reads import project_scope
from . import roles, schemas
from .directory import find_principal
from .errors import GrantExceedsOwn, NotLendable, PermissionUnknown
from .principals import delegated, lender_of
from .rows import DelegationRow
from .tables import delegations

declare(
    {
        "tenancy.delegation.created": "A delegation was created: a service account may act on behalf of the grantor.",
        "tenancy.delegation.revoked": (
            "A delegation was revoked; the service account loses the delegated permissions at once."
        ),
    }
)

MOST_S = 90 * 24 * 3600
DELEGATION_ID = delegations.c.id
_ROWS = Query(select(delegations), DelegationRow)
_IN_PROJECT = _ROWS.where(delegations.c.project_id == bindparam("project"), delegations.c.id == bindparam("delegation"))


def create_delegation(ctx: Context, project_id: str, body: schemas.CreateDelegation) -> DelegationRow:
    keys = sorted(set(body.permissions))
    _check_keys(ctx, keys)
    _check_grantee(ctx, body.grantee_id)
    delegation_id = ctx.resource_id = new_id("dlg")
    ctx.tx.execute(
        insert(delegations).values(
            id=delegation_id,
            tenant_id=ctx.scope.tenant_id,
            project_id=project_id,
            grantor_id=ctx.principal.id,
            grantee_id=body.grantee_id,
            permissions=keys,
            subject=body.subject,
            reason=body.reason,
            expires_at=ctx.now + body.expires_in_s * 1000,
            created_at=ctx.now,
        )
    )
    facts = {"grantor_id": ctx.principal.id, "grantee_id": body.grantee_id, "permissions": keys}
    ctx.emit("tenancy.delegation.created", delegation_id, facts | {"reason": body.reason, "subject": body.subject})
    ctx.rights_changed(body.grantee_id)
    return _one(ctx.tx, project_id, delegation_id)


def revoke_delegation(ctx: Context, project_id: str, delegation_id: str) -> DelegationRow:
    """Revoke a delegation, effective on the grantee's next request. A delegation that was revoked before stays
    unchanged."""
    row = _one(ctx.tx, project_id, delegation_id)
    ctx.resource_id = delegation_id
    if row.revoked_at is None:
        changes = {"revoked_at": ctx.now, "revoked_by": ctx.principal.id}
        ctx.tx.execute(update(delegations).where(delegations.c.id == delegation_id).values(**changes))
        facts = {"grantor_id": row.grantor_id, "grantee_id": row.grantee_id}
        ctx.emit("tenancy.delegation.revoked", delegation_id, facts)
        ctx.rights_changed(row.grantee_id)
    return _one(ctx.tx, project_id, delegation_id)


def delegations_into(project_id: str) -> Query[DelegationRow]:
    return _ROWS.where(delegations.c.project_id == project_id)


def view(ctx: Context, row: DelegationRow) -> schemas.DelegationView:
    facts = {"state": _state(row, ctx.now), "effective": _effective(ctx.tx, row, ctx.now)}
    return schemas.DelegationView.model_validate(vars(row) | facts)


def _state(row: DelegationRow, now: int) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "expired" if row.expires_at <= now else "active"


def _effective(tx: Connection, row: DelegationRow, now: int) -> list[str]:
    """Return the permissions that the delegation grants now, without those that the grantor has lost or a deny rule
    denies. Empty if the delegation is not active or the grantor is disabled."""
    lender = lender_of(tx, row) if _state(row, now) == "active" else None
    if lender is None:
        return []
    scope = project_scope(tx, row.project_id)
    denies = rules_at(tx, scope.chain)
    return [key for key in sorted(delegated(row, lender).keys) if evaluate(lender, key, scope, denies).allowed]


def _check_keys(ctx: Context, keys: list[str]) -> None:
    if unknown := [key for key in keys if key not in PERMISSIONS]:
        raise PermissionUnknown(f"There is no permission {unknown[0]!r}.")
    if kept := [key for key in keys if key in UNLENDABLE]:
        raise NotLendable(f"The permission {kept[0]!r} cannot be lent.")
    denies = rules_at(ctx.tx, ctx.scope.chain)
    myself = replace(ctx.principal, grants=())  # delegated and break-glass permissions cannot be lent on
    mine = [key for key in keys if evaluate(myself, key, ctx.scope, denies).allowed]
    if missing := sorted(set(keys) - set(mine)):
        raise GrantExceedsOwn(f"You do not have these permissions here: {', '.join(missing[:5])}.")
    if OPERATOR_KEYS.intersection(keys):
        roles.check_appoints(ctx.tx, myself, ctx.scope, "This delegation")


def _check_grantee(ctx: Context, account_id: str) -> None:
    """Raise 404 unless the grantee is a service account of this tenant. The account may belong to any of its
    projects."""
    row = find_principal(ctx.tx, account_id)
    here = row is not None and row.tenant_id == ctx.scope.tenant_id and row.deleted_at is None
    if row is None or not here or row.kind != "service_account":
        raise NotFound("There is no such service account in this tenant.")


def _one(tx: Connection, project_id: str, delegation_id: str) -> DelegationRow:
    row = _IN_PROJECT.first(tx, project=project_id, delegation=delegation_id)
    if row is None:
        raise NotFound("There is no such delegation in this project.")
    return row
