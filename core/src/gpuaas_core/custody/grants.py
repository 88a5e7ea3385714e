"""The book of access grants: which certificate was given to whom, for which operation, epoch and allocation."""

from typing import Any

from sqlalchemy import insert

from ..access.context import Context
from ..kit.ids import new_id
from .authorities import Certificate
from .tables import access_grants


def record(ctx: Context, certificate: Certificate, **of: Any) -> str:
    grant_id = new_id("grant")
    values = {
        "id": grant_id,
        "serial": certificate.serial,
        "tenant_id": ctx.scope.tenant_id,
        "project_id": ctx.scope.project_id,
        "principal_id": ctx.principal.id,
        "expires_at": ctx.now + certificate.lives_s * 1000,
        "created_at": ctx.now,
    }
    ctx.tx.execute(insert(access_grants).values(**values, **of))
    return grant_id
