"""What the holder of a claim may do beside reporting: get access to the machines of the instance it works on."""

from typing import Any

from sqlalchemy import Row

from ..authz.context import Context
from ..custody.vault import Vault
from ..operations.claims import held_with_target
from . import certificates, schemas
from .fencing import check_not_fenced
from .reads import instance_row
from .work import Work, work_of


def held(ctx: Context, project_id: str, operation_id: str, epoch: int) -> tuple[Work, Row[Any]]:
    """The operation and its instance, locked, if this caller holds it under this epoch; otherwise 409."""
    operation, _, _ = held_with_target(ctx, project_id, operation_id, epoch)
    work = work_of(operation)
    return work, instance_row(ctx.tx, project_id, work.instance_id)


def grant_access(
    ctx: Context, vault: Vault, project_id: str, operation_id: str, body: schemas.AskAccess
) -> schemas.GrantView:
    row, instance = held(ctx, project_id, operation_id, body.claim_epoch)
    check_not_fenced(ctx, row, body.allocation_id)
    return certificates.grant(ctx, vault, instance, row, body)
