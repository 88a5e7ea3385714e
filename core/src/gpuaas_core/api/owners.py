"""Finds the scope of a resource by its id. The HTTP layer needs the scope when a request tries to change a resource
outside the scope in its path: the attempt is written to the audit trail of the resource's owner.

Covers resources whose ids appear in paths and whose rows have a tenant or project.
"""

from sqlalchemy import Connection, select

from ..authz.evaluate import Scope
from ..kit.db import metadata
from ..tenancy.reads import project_scope, tenant_scope

TABLES = {
    "alloc": "allocations",
    "bind": "role_bindings",
    "cred": "credentials",
    "dlg": "delegations",
    "grant": "access_grants",
    "idp": "identity_providers",
    "inst": "instances",
    "inv": "invitations",
    "node": "nodes",
    "op": "operations",
    "orph": "orphans",
    "sa": "principals",
    "sec": "runtime_secrets",
    "task": "node_tasks",
    "usr": "principals",
}


def owner_of(tx: Connection, thing_id: str) -> Scope | None:
    name = TABLES.get(thing_id.partition("_")[0])
    if name is None:
        return None
    table = metadata.tables[name]
    places = [table.c[column] for column in ("tenant_id", "project_id") if column in table.c]
    row = tx.execute(select(*places).where(table.c.id == thing_id)).mappings().first()
    if row is None:
        return None
    if project_id := row.get("project_id"):
        return project_scope(tx, project_id)
    tenant_id = row.get("tenant_id")
    return tenant_scope(tx, tenant_id) if tenant_id else None
