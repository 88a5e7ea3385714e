"""The directory of principals: users, service accounts and nodes are rows of one table.

IAM owns the table because roles, delegations and break-glass point at it. Identity, which is above IAM, creates and
changes principals through these functions and joins its own tables with `select_principals`.
"""

from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from ..kit.db import insert_new
from .tables import principals


def add_principal(tx: Connection, **values: Any) -> None:
    tx.execute(insert(principals).values(**values))


def add_unless_taken(tx: Connection, **values: Any) -> bool:
    """False if the tenant has an account with this e-mail; then no row was written."""
    return insert_new(tx, principals, **values)


def change_principal(tx: Connection, principal_id: str, **changes: Any) -> None:
    tx.execute(update(principals).where(principals.c.id == principal_id).values(**changes))


def select_principals(*, kind: str | None = None, tenant_id: str | None = None) -> Select[Any]:
    """For rooms that filter and join further, by `query.selected_columns`."""
    query = select(principals)
    if kind is not None:
        query = query.where(principals.c.kind == kind)
    return query if tenant_id is None else query.where(principals.c.tenant_id == tenant_id)


def find_principal(tx: Connection, principal_id: str) -> Row[Any] | None:
    return tx.execute(select(principals).where(principals.c.id == principal_id)).first()


def get_principal(tx: Connection, principal_id: str) -> Row[Any]:
    """The row of a principal that must exist."""
    return tx.execute(select(principals).where(principals.c.id == principal_id)).one()
