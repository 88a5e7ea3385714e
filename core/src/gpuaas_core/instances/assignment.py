"""Which service accounts serve an instance: claim its operations, and observe it between them.

If its deploy named an operator, only that account does both, unless it was disabled or deleted since: otherwise no
account could tear its instances down. If none was named, every operator of the project claims its operations, and
those that have claimed an operation of its app in the project observe it. When none of them may work on operations any
more, any operator of the project observes it: a new account takes over without waiting for an operation.
"""

from typing import Any

from sqlalchemy import Connection, Row, select

from ..authz.context import Context
from ..iam.explain import explain_other
from ..iam.tables import principals
from ..identity.service_accounts import accounts_of
from ..kit.problems import Problem
from ..operations.tables import operations
from .errors import ObserverNotController

WORKS = "apps.operation.work"


class OperatorUnusable(Problem):
    status, code, title = 422, "operator_unusable", "This service account cannot operate the instance"
    way_out = "Name one of `gpuaas service-account list` that is enabled and has the role app_operator; or name none."


def check_usable(ctx: Context, project_id: str, account_id: str | None) -> None:
    if account_id is None:
        return
    account = ctx.tx.execute(accounts_of(project_id).where(principals.c.id == account_id)).first()
    if account is None:
        raise OperatorUnusable(f"{account_id!r} is not a service account of this project.")
    if account.disabled_at is not None:
        raise OperatorUnusable(f"The service account {account.name!r} is disabled.")
    found = explain_other(ctx.tx, account_id, WORKS, ctx.scope, ctx.now)
    if not found.allowed:
        raise OperatorUnusable(f"The service account {account.name!r} may not work on operations: {found.reason}.")


def check_serves(ctx: Context, instance: Row[Any]) -> None:
    if instance.operator_id is not None and _binds(ctx.tx, instance.operator_id):
        if instance.operator_id != ctx.principal.id:
            raise ObserverNotController("This instance is operated by another service account.")
    elif not _works_for_app(ctx, instance):
        app = instance.app_slug
        raise ObserverNotController(
            f"{ctx.principal.name} has claimed no operation of {app!r} in this project; other accounts operate the app."
        )


def _works_for_app(ctx: Context, instance: Row[Any]) -> bool:
    o = operations.c
    of_app = (o.scope_id == instance.project_id, o.app_slug == instance.app_slug)
    if ctx.tx.execute(select(o.id).where(*of_app, o.claimant_id == ctx.principal.id).limit(1)).first():
        return True
    accounts = select(principals.c.id).where(principals.c.kind == "service_account", principals.c.disabled_at.is_(None))
    others = select(o.claimant_id).where(*of_app, o.claimant_id.in_(accounts)).distinct()
    may_work = (explain_other(ctx.tx, other, WORKS, ctx.scope, ctx.now) for other in ctx.tx.execute(others).scalars())
    return not any(found.allowed for found in may_work)


def _binds(tx: Connection, account_id: str) -> bool:
    able = select(principals.c.id).where(principals.c.id == account_id, principals.c.disabled_at.is_(None))
    return tx.execute(able).first() is not None
