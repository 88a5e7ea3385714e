"""Who operates an instance: any controller of its app in the project, unless its deploy named one service account.

Then only that account claims the instance's operations and looks at it between them. An account that is disabled or
deleted binds nobody: otherwise nobody could tear its instances down.
"""

from typing import Any

from sqlalchemy import Connection, Row, exists, select

from ..access.context import Context
from ..kit.problems import Problem
from ..tenancy.accounts import accounts_of
from ..tenancy.explain import explain_other
from ..tenancy.tables import principals
from .errors import ObserverNotController
from .tables import instances, operations

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


def somebody_elses(ctx: Context) -> Any:
    """Of a query on operations: those of instances that another account operates."""
    named = instances.alias("named").c
    mine = (named.id == operations.c.instance_id) & (named.operator_id != ctx.principal.id)
    return exists().where(mine, principals.c.id == named.operator_id, principals.c.disabled_at.is_(None))


def check_operates(ctx: Context, instance: Row[Any]) -> None:
    if instance.operator_id not in (None, ctx.principal.id) and _binds(ctx.tx, instance.operator_id):
        raise ObserverNotController("This instance is operated by another service account.")


def _binds(tx: Connection, account_id: str) -> bool:
    able = select(principals.c.id).where(principals.c.id == account_id, principals.c.disabled_at.is_(None))
    return tx.execute(able).first() is not None
